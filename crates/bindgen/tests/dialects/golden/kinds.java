static void putPoint(Writer w, int at, Point value) {
  w.s32(at, value.x());
  w.s32(at + 4, value.y());
}

static Point getPoint(Message m, int at) {
  return new Point(m.s32(at), m.s32(at + 4));
}

static void putShape(Writer w, int at, Shape value) {
  if (value instanceof Shape.Nothing) {
    w.u8(at, 0);
  } else if (value instanceof Shape.Circle valueCase1) {
    w.u8(at, 1);
    w.f64(at + 8, valueCase1.value());
  } else if (value instanceof Shape.Polygon valueCase2) {
    w.u8(at, 2);
    List<Point> v1 = valueCase2.value();
    int n2 = v1.size();
    int p2 = w.list(at + 8, n2, 8, 4);
    for (int i2 = 0; i2 < n2; i2++) {
      putPoint(w, p2 + i2 * 8, v1.get(i2));
    }
  } else if (value instanceof Shape.Part valueCase3) {
    w.u8(at, 3);
    Tuple2<Point, String> v3 = valueCase3.value();
    putPoint(w, at + 8, v3.f0());
    String v4 = v3.f1();
    if (v4 != null) {
      w.u8(at + 16, 1);
      w.text(at + 20, v4);
    }
  } else {
    w.fail("a case of shape is expected");
  }
}

static Shape getShape(Message m, int at) {
  int t1 = m.u8(at);
  Shape v1;
  if (t1 == 0) {
    v1 = new Shape.Nothing();
  } else if (t1 == 1) {
    v1 = new Shape.Circle(m.f64(at + 8));
  } else if (t1 == 2) {
    int n2 = m.number(at + 12);
    int p2 = m.number(at + 8);
    List<Point> v2 = new ArrayList<>(n2);
    for (int i2 = 0; i2 < n2; i2++) {
      v2.add(getPoint(m, p2 + i2 * 8));
    }
    v1 = new Shape.Polygon(v2);
  } else {
    int t3 = m.u8(at + 16);
    String v3 = null;
    if (t3 == 1) {
      v3 = m.text(at + 20);
    }
    v1 = new Shape.Part(new Tuple2<>(getPoint(m, at + 8), v3));
  }
  return v1;
}

static void checkShape(Message m, int at) {
  int t1 = m.checkTag(at, 1, 4);
  if (t1 == 2) {
    m.checkList(at + 8, 8, 4);
  } else if (t1 == 3) {
    int t2 = m.checkTag(at + 16, 1, 2);
    if (t2 == 1) {
      m.checkText(at + 20);
    }
  }
}

static void putEvery(Writer w, int at, Every value) {
  w.bool(at, value.flag());
  w.codePoint(at + 4, value.letter());
  w.u64(at + 8, value.big());
  w.u8List(at + 16, value.bytes());
  w.f32List(at + 24, value.numbers());
  List<Integer> v1 = value.letters();
  int n2 = v1.size();
  int p2 = w.list(at + 32, n2, 4, 4);
  for (int i2 = 0; i2 < n2; i2++) {
    w.codePoint(p2 + i2 * 4, v1.get(i2));
  }
  String v3 = value.name();
  if (v3 != null) {
    w.u8(at + 40, 1);
    w.text(at + 44, v3);
  }
  Some<Integer> v4 = value.twice();
  if (v4 != null) {
    w.u8(at + 52, 1);
    Integer v5 = v4.value();
    if (v5 != null) {
      w.u8(at + 56, 1);
      w.u32(at + 60, v5);
    }
  }
  Point v6 = value.at();
  if (v6 != null) {
    w.u8(at + 64, 1);
    putPoint(w, at + 68, v6);
  }
  List<int[]> v7 = value.grid();
  int n8 = v7.size();
  int p8 = w.list(at + 76, n8, 8, 4);
  for (int i8 = 0; i8 < n8; i8++) {
    w.s32List(p8 + i8 * 8, v7.get(i8));
  }
  List<Tuple2<String, Integer>> v9 = value.pairs();
  int n10 = v9.size();
  int p10 = w.list(at + 84, n10, 12, 4);
  for (int i10 = 0; i10 < n10; i10++) {
    Tuple2<String, Integer> v11 = v9.get(i10);
    w.text(p10 + i10 * 12, v11.f0());
    Integer v12 = v11.f1();
    if (v12 != null) {
      w.u8(p10 + i10 * 12 + 8, 1);
      w.u8(p10 + i10 * 12 + 9, v12);
    }
  }
  Result<Long, String> v13 = value.outcome();
  if (v13 instanceof Result.Ok<?, ?>) {
    w.u8(at + 96, 0);
    w.u64(at + 104, v13.ok());
  } else if (v13 instanceof Result.Error<?, ?>) {
    w.u8(at + 96, 1);
    w.text(at + 104, v13.error());
  } else {
    w.fail("a case of result<u64, string> is expected");
  }
  Result<Void, Void> v14 = value.bare();
  if (v14 instanceof Result.Ok<?, ?>) {
    w.u8(at + 112, 0);
  } else if (v14 instanceof Result.Error<?, ?>) {
    w.u8(at + 112, 1);
  } else {
    w.fail("a case of result is expected");
  }
  w.u8(at + 113, value.color().ordinal());
  w.u8(at + 114, w.flags(value.rights(), 3));
  w.u8Array(at + 115, value.key(), 4);
  List<String> v15 = value.both();
  w.exactly(v15, 2);
  for (int i16 = 0; i16 < 2; i16++) {
    w.text(at + 120 + i16 * 8, v15.get(i16));
  }
  List<Point> v17 = value.places();
  w.exactly(v17, 2);
  for (int i18 = 0; i18 < 2; i18++) {
    putPoint(w, at + 136 + i18 * 8, v17.get(i18));
  }
  List<String> v19 = value.names();
  int n20 = v19.size();
  int p20 = w.list(at + 152, n20, 8, 4);
  for (int i20 = 0; i20 < n20; i20++) {
    w.text(p20 + i20 * 8, v19.get(i20));
  }
  putShape(w, at + 160, value.shape());
  List<Color> v21 = value.colors();
  int n22 = v21.size();
  int p22 = w.list(at + 192, n22, 1, 1);
  for (int i22 = 0; i22 < n22; i22++) {
    w.u8(p22 + i22, v21.get(i22).ordinal());
  }
}

static Every getEvery(Message m, int at) {
  int n1 = m.number(at + 36);
  int p1 = m.number(at + 32);
  List<Integer> v1 = new ArrayList<>(n1);
  for (int i1 = 0; i1 < n1; i1++) {
    v1.add(m.codePoint(p1 + i1 * 4));
  }
  int t2 = m.u8(at + 40);
  String v2 = null;
  if (t2 == 1) {
    v2 = m.text(at + 44);
  }
  int t3 = m.u8(at + 52);
  Some<Integer> v3 = null;
  if (t3 == 1) {
    int t4 = m.u8(at + 56);
    Integer v4 = null;
    if (t4 == 1) {
      v4 = m.u32(at + 60);
    }
    v3 = new Some<>(v4);
  }
  int t5 = m.u8(at + 64);
  Point v5 = null;
  if (t5 == 1) {
    v5 = getPoint(m, at + 68);
  }
  int n6 = m.number(at + 80);
  int p6 = m.number(at + 76);
  List<int[]> v6 = new ArrayList<>(n6);
  for (int i6 = 0; i6 < n6; i6++) {
    v6.add(m.s32List(p6 + i6 * 8));
  }
  int n7 = m.number(at + 88);
  int p7 = m.number(at + 84);
  List<Tuple2<String, Integer>> v7 = new ArrayList<>(n7);
  for (int i7 = 0; i7 < n7; i7++) {
    int t8 = m.u8(p7 + i7 * 12 + 8);
    Integer v8 = null;
    if (t8 == 1) {
      v8 = m.u8(p7 + i7 * 12 + 9);
    }
    v7.add(new Tuple2<>(m.text(p7 + i7 * 12), v8));
  }
  int t9 = m.u8(at + 96);
  Result<Long, String> v9;
  if (t9 == 0) {
    v9 = new Result.Ok<>(m.u64(at + 104));
  } else {
    v9 = new Result.Error<>(m.text(at + 104));
  }
  int t10 = m.u8(at + 112);
  Result<Void, Void> v10;
  if (t10 == 0) {
    v10 = new Result.Ok<>(null);
  } else {
    v10 = new Result.Error<>(null);
  }
  List<String> v11 = new ArrayList<>(2);
  for (int i11 = 0; i11 < 2; i11++) {
    v11.add(m.text(at + 120 + i11 * 8));
  }
  List<Point> v12 = new ArrayList<>(2);
  for (int i12 = 0; i12 < 2; i12++) {
    v12.add(getPoint(m, at + 136 + i12 * 8));
  }
  int n13 = m.number(at + 156);
  int p13 = m.number(at + 152);
  List<String> v13 = new ArrayList<>(n13);
  for (int i13 = 0; i13 < n13; i13++) {
    v13.add(m.text(p13 + i13 * 8));
  }
  int n14 = m.number(at + 196);
  int p14 = m.number(at + 192);
  List<Color> v14 = new ArrayList<>(n14);
  for (int i14 = 0; i14 < n14; i14++) {
    v14.add(Color.values()[m.u8(p14 + i14)]);
  }
  return new Every(m.bool(at), m.codePoint(at + 4), m.u64(at + 8), m.u8List(at + 16),
                   m.f32List(at + 24), v1, v2, v3, v5, v6, v7, v9, v10,
                   Color.values()[m.u8(at + 113)], m.u8(at + 114), m.u8Array(at + 115, 4), v11,
                   v12, v13, getShape(m, at + 160), v14);
}

static void checkEvery(Message m, int at) {
  m.checkBool(at);
  m.checkChar(at + 4);
  m.checkList(at + 16, 1, 1);
  m.checkList(at + 24, 4, 4);
  int n1 = m.checkList(at + 32, 4, 4);
  int p1 = m.number(at + 32);
  for (int i1 = 0; i1 < n1; i1++) {
    m.checkChar(p1 + i1 * 4);
  }
  int t2 = m.checkTag(at + 40, 1, 2);
  if (t2 == 1) {
    m.checkText(at + 44);
  }
  int t3 = m.checkTag(at + 52, 1, 2);
  if (t3 == 1) {
    m.checkTag(at + 56, 1, 2);
  }
  m.checkTag(at + 64, 1, 2);
  int n4 = m.checkList(at + 76, 8, 4);
  int p4 = m.number(at + 76);
  for (int i4 = 0; i4 < n4; i4++) {
    m.checkList(p4 + i4 * 8, 4, 4);
  }
  int n5 = m.checkList(at + 84, 12, 4);
  int p5 = m.number(at + 84);
  for (int i5 = 0; i5 < n5; i5++) {
    m.checkText(p5 + i5 * 12);
    m.checkTag(p5 + i5 * 12 + 8, 1, 2);
  }
  int t6 = m.checkTag(at + 96, 1, 2);
  if (t6 == 1) {
    m.checkText(at + 104);
  }
  m.checkTag(at + 112, 1, 2);
  m.checkTag(at + 113, 1, 2);
  m.checkFlags(at + 114, 1, 3);
  for (int i7 = 0; i7 < 2; i7++) {
    m.checkText(at + 120 + i7 * 8);
  }
  int n8 = m.checkList(at + 152, 8, 4);
  int p8 = m.number(at + 152);
  for (int i8 = 0; i8 < n8; i8++) {
    m.checkText(p8 + i8 * 8);
  }
  checkShape(m, at + 160);
  int n9 = m.checkList(at + 192, 1, 1);
  int p9 = m.number(at + 192);
  for (int i9 = 0; i9 < n9; i9++) {
    m.checkTag(p9 + i9, 1, 2);
  }
}
