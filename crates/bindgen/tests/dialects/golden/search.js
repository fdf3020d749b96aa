function putOptions(w, at, value) {
  w.bool(at, value.fixed);
  w.bool(at + 1, value.ignoreCase);
  w.bool(at + 2, value.hidden);
  w.bool(at + 3, value.ignoreFiles);
  const v1 = value.globs;
  const n2 = w.length(v1);
  const p2 = w.list(at + 4, n2, 8, 4);
  for (let i2 = 0; i2 < n2; i2++) {
    w.text(p2 + i2 * 8, v1[i2]);
  }
}

function getMatch(m, at) {
  const t1 = m.u8(at + 32);
  let v1;
  if (t1 === 1) {
    v1 = m.numbers(at + 36, Uint8Array);
  }
  const t2 = m.u8(at + 44);
  let v2;
  if (t2 === 1) {
    v2 = m.numbers(at + 48, Uint8Array);
  }
  return { path: m.text(at), line: m.u64(at + 8), column: m.u64(at + 16), text: m.text(at + 24),
    pathBytes: v1, textBytes: v2, cut: m.bool(at + 56) };
}

function getProgress(m, at) {
  const t1 = m.u8(at + 32);
  let v1;
  if (t1 === 1) {
    v1 = m.text(at + 36);
  }
  return { files: m.u64(at), bytes: m.u64(at + 8), matches: m.u64(at + 16),
    unreadable: m.u64(at + 24), problem: v1 };
}

function getSearchError(m, at) {
  const t1 = m.u8(at);
  let v1;
  if (t1 === 0) {
    v1 = { tag: 'pattern', value: m.text(at + 4) };
  } else if (t1 === 1) {
    v1 = { tag: 'glob', value: m.text(at + 4) };
  } else {
    v1 = { tag: 'directory', value: m.text(at + 4) };
  }
  return v1;
}

function checkSearchError(m, at) {
  const t1 = m.checkTag(at, 1, 3);
  if (t1 === 0) {
    m.checkText(at + 4);
  } else if (t1 === 1) {
    m.checkText(at + 4);
  } else if (t1 === 2) {
    m.checkText(at + 4);
  }
}
