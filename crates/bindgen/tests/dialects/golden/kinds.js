const Color = ['red', 'green'];

function putPoint(w, at, value) {
  w.s32(at, value.x);
  w.s32(at + 4, value.y);
}

function getPoint(m, at) {
  return { x: m.s32(at), y: m.s32(at + 4) };
}

function putShape(w, at, value) {
  if (value.tag === 'nothing') {
    w.u8(at, 0);
  } else if (value.tag === 'circle') {
    w.u8(at, 1);
    w.f64(at + 8, value.value);
  } else if (value.tag === 'polygon') {
    w.u8(at, 2);
    const v1 = value.value;
    const n2 = w.length(v1);
    const p2 = w.list(at + 8, n2, 8, 4);
    for (let i2 = 0; i2 < n2; i2++) {
      putPoint(w, p2 + i2 * 8, v1[i2]);
    }
  } else if (value.tag === 'part') {
    w.u8(at, 3);
    const v3 = value.value;
    putPoint(w, at + 8, v3[0]);
    const v4 = v3[1];
    if (v4 !== undefined) {
      w.u8(at + 16, 1);
      w.text(at + 20, v4);
    }
  } else {
    w.fail('a case of shape is expected');
  }
}

function getShape(m, at) {
  const t1 = m.u8(at);
  let v1;
  if (t1 === 0) {
    v1 = { tag: 'nothing' };
  } else if (t1 === 1) {
    v1 = { tag: 'circle', value: m.f64(at + 8) };
  } else if (t1 === 2) {
    const n2 = m.u32(at + 12);
    const p2 = m.u32(at + 8);
    const v2 = new Array(n2);
    for (let i2 = 0; i2 < n2; i2++) {
      v2[i2] = getPoint(m, p2 + i2 * 8);
    }
    v1 = { tag: 'polygon', value: v2 };
  } else {
    const t3 = m.u8(at + 16);
    let v3;
    if (t3 === 1) {
      v3 = m.text(at + 20);
    }
    v1 = { tag: 'part', value: [getPoint(m, at + 8), v3] };
  }
  return v1;
}

function checkShape(m, at) {
  const t1 = m.checkTag(at, 1, 4);
  if (t1 === 2) {
    m.checkList(at + 8, 8, 4);
  } else if (t1 === 3) {
    const t2 = m.checkTag(at + 16, 1, 2);
    if (t2 === 1) {
      m.checkText(at + 20);
    }
  }
}

function putEvery(w, at, value) {
  w.bool(at, value.flag);
  w.char(at + 4, value.letter);
  w.u64(at + 8, value.big);
  w.numbers(at + 16, value.bytes, Uint8Array);
  w.numbers(at + 24, value.numbers, Float32Array);
  const v1 = value.letters;
  const n2 = w.length(v1);
  const p2 = w.list(at + 32, n2, 4, 4);
  for (let i2 = 0; i2 < n2; i2++) {
    w.char(p2 + i2 * 4, v1[i2]);
  }
  const v3 = value.name;
  if (v3 !== undefined) {
    w.u8(at + 40, 1);
    w.text(at + 44, v3);
  }
  const v4 = value.twice;
  if (v4 !== undefined) {
    w.u8(at + 52, 1);
    const v5 = v4.some;
    if (v5 !== undefined) {
      w.u8(at + 56, 1);
      w.u32(at + 60, v5);
    }
  }
  const v6 = value.at;
  if (v6 !== undefined) {
    w.u8(at + 64, 1);
    putPoint(w, at + 68, v6);
  }
  const v7 = value.grid;
  const n8 = w.length(v7);
  const p8 = w.list(at + 76, n8, 8, 4);
  for (let i8 = 0; i8 < n8; i8++) {
    w.numbers(p8 + i8 * 8, v7[i8], Int32Array);
  }
  const v9 = value.pairs;
  const n10 = w.length(v9);
  const p10 = w.list(at + 84, n10, 12, 4);
  for (let i10 = 0; i10 < n10; i10++) {
    const v11 = v9[i10];
    w.text(p10 + i10 * 12, v11[0]);
    const v12 = v11[1];
    if (v12 !== undefined) {
      w.u8(p10 + i10 * 12 + 8, 1);
      w.u8(p10 + i10 * 12 + 9, v12);
    }
  }
  const v13 = value.outcome;
  if (v13.tag === 'ok') {
    w.u8(at + 96, 0);
    w.u64(at + 104, v13.value);
  } else if (v13.tag === 'error') {
    w.u8(at + 96, 1);
    w.text(at + 104, v13.value);
  } else {
    w.fail('a case of result<u64, string> is expected');
  }
  const v14 = value.bare;
  if (v14.tag === 'ok') {
    w.u8(at + 112, 0);
  } else if (v14.tag === 'error') {
    w.u8(at + 112, 1);
  } else {
    w.fail('a case of result is expected');
  }
  w.u8(at + 113, Color.indexOf(value.color));
  w.u8(at + 114, w.flags(value.rights, 3));
  w.array(at + 115, value.key, Uint8Array, 4);
  const v15 = value.both;
  w.exactly(v15, 2);
  for (let i16 = 0; i16 < 2; i16++) {
    w.text(at + 120 + i16 * 8, v15[i16]);
  }
  const v17 = value.places;
  w.exactly(v17, 2);
  for (let i18 = 0; i18 < 2; i18++) {
    putPoint(w, at + 136 + i18 * 8, v17[i18]);
  }
  const v19 = value.names;
  const n20 = w.length(v19);
  const p20 = w.list(at + 152, n20, 8, 4);
  for (let i20 = 0; i20 < n20; i20++) {
    w.text(p20 + i20 * 8, v19[i20]);
  }
  putShape(w, at + 160, value.shape);
  const v21 = value.colors;
  const n22 = w.length(v21);
  const p22 = w.list(at + 192, n22, 1, 1);
  for (let i22 = 0; i22 < n22; i22++) {
    w.u8(p22 + i22, Color.indexOf(v21[i22]));
  }
}

function getEvery(m, at) {
  const n1 = m.u32(at + 36);
  const p1 = m.u32(at + 32);
  const v1 = new Array(n1);
  for (let i1 = 0; i1 < n1; i1++) {
    v1[i1] = m.char(p1 + i1 * 4);
  }
  const t2 = m.u8(at + 40);
  let v2;
  if (t2 === 1) {
    v2 = m.text(at + 44);
  }
  const t3 = m.u8(at + 52);
  let v3;
  if (t3 === 1) {
    const t4 = m.u8(at + 56);
    let v4;
    if (t4 === 1) {
      v4 = m.u32(at + 60);
    }
    v3 = { some: v4 };
  }
  const t5 = m.u8(at + 64);
  let v5;
  if (t5 === 1) {
    v5 = getPoint(m, at + 68);
  }
  const n6 = m.u32(at + 80);
  const p6 = m.u32(at + 76);
  const v6 = new Array(n6);
  for (let i6 = 0; i6 < n6; i6++) {
    v6[i6] = m.numbers(p6 + i6 * 8, Int32Array);
  }
  const n7 = m.u32(at + 88);
  const p7 = m.u32(at + 84);
  const v7 = new Array(n7);
  for (let i7 = 0; i7 < n7; i7++) {
    const t8 = m.u8(p7 + i7 * 12 + 8);
    let v8;
    if (t8 === 1) {
      v8 = m.u8(p7 + i7 * 12 + 9);
    }
    v7[i7] = [m.text(p7 + i7 * 12), v8];
  }
  const t9 = m.u8(at + 96);
  let v9;
  if (t9 === 0) {
    v9 = { tag: 'ok', value: m.u64(at + 104) };
  } else {
    v9 = { tag: 'error', value: m.text(at + 104) };
  }
  const t10 = m.u8(at + 112);
  let v10;
  if (t10 === 0) {
    v10 = { tag: 'ok' };
  } else {
    v10 = { tag: 'error' };
  }
  const v11 = new Array(2);
  for (let i11 = 0; i11 < 2; i11++) {
    v11[i11] = m.text(at + 120 + i11 * 8);
  }
  const v12 = new Array(2);
  for (let i12 = 0; i12 < 2; i12++) {
    v12[i12] = getPoint(m, at + 136 + i12 * 8);
  }
  const n13 = m.u32(at + 156);
  const p13 = m.u32(at + 152);
  const v13 = new Array(n13);
  for (let i13 = 0; i13 < n13; i13++) {
    v13[i13] = m.text(p13 + i13 * 8);
  }
  const n14 = m.u32(at + 196);
  const p14 = m.u32(at + 192);
  const v14 = new Array(n14);
  for (let i14 = 0; i14 < n14; i14++) {
    v14[i14] = Color[m.u8(p14 + i14)];
  }
  return { flag: m.bool(at), letter: m.char(at + 4), big: m.u64(at + 8), bytes: m.numbers(at + 16,
                                                                                          Uint8Array), numbers: m.numbers(at + 24, Float32Array), letters: v1, name: v2, twice: v3, at: v5, grid: v6, pairs: v7, outcome: v9, bare: v10, color: Color[m.u8(at + 113)], rights: m.u8(at + 114), key: m.array(at + 115, Uint8Array, 4), both: v11, places: v12, names: v13, shape: getShape(m, at + 160), colors: v14 };
}

function checkEvery(m, at) {
  m.checkBool(at);
  m.checkChar(at + 4);
  m.checkList(at + 16, 1, 1);
  m.checkList(at + 24, 4, 4);
  const n1 = m.checkList(at + 32, 4, 4);
  const p1 = m.u32(at + 32);
  for (let i1 = 0; i1 < n1; i1++) {
    m.checkChar(p1 + i1 * 4);
  }
  const t2 = m.checkTag(at + 40, 1, 2);
  if (t2 === 1) {
    m.checkText(at + 44);
  }
  const t3 = m.checkTag(at + 52, 1, 2);
  if (t3 === 1) {
    m.checkTag(at + 56, 1, 2);
  }
  m.checkTag(at + 64, 1, 2);
  const n4 = m.checkList(at + 76, 8, 4);
  const p4 = m.u32(at + 76);
  for (let i4 = 0; i4 < n4; i4++) {
    m.checkList(p4 + i4 * 8, 4, 4);
  }
  const n5 = m.checkList(at + 84, 12, 4);
  const p5 = m.u32(at + 84);
  for (let i5 = 0; i5 < n5; i5++) {
    m.checkText(p5 + i5 * 12);
    m.checkTag(p5 + i5 * 12 + 8, 1, 2);
  }
  const t6 = m.checkTag(at + 96, 1, 2);
  if (t6 === 1) {
    m.checkText(at + 104);
  }
  m.checkTag(at + 112, 1, 2);
  m.checkTag(at + 113, 1, 2);
  m.checkFlags(at + 114, 1, 3);
  for (let i7 = 0; i7 < 2; i7++) {
    m.checkText(at + 120 + i7 * 8);
  }
  const n8 = m.checkList(at + 152, 8, 4);
  const p8 = m.u32(at + 152);
  for (let i8 = 0; i8 < n8; i8++) {
    m.checkText(p8 + i8 * 8);
  }
  checkShape(m, at + 160);
  const n9 = m.checkList(at + 192, 1, 1);
  const p9 = m.u32(at + 192);
  for (let i9 = 0; i9 < n9; i9++) {
    m.checkTag(p9 + i9, 1, 2);
  }
}
