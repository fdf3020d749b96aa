static void putOptions(Writer w, int at, Options value) {
  w.bool(at, value.fixed());
  w.bool(at + 1, value.ignoreCase());
  w.bool(at + 2, value.hidden());
  w.bool(at + 3, value.ignoreFiles());
  List<String> v1 = value.globs();
  int n2 = v1.size();
  int p2 = w.list(at + 4, n2, 8, 4);
  for (int i2 = 0; i2 < n2; i2++) {
    w.text(p2 + i2 * 8, v1.get(i2));
  }
}

static Match getMatch(Message m, int at) {
  int t1 = m.u8(at + 32);
  byte[] v1 = null;
  if (t1 == 1) {
    v1 = m.u8List(at + 36);
  }
  int t2 = m.u8(at + 44);
  byte[] v2 = null;
  if (t2 == 1) {
    v2 = m.u8List(at + 48);
  }
  return new Match(m.text(at), m.u64(at + 8), m.u64(at + 16), m.text(at + 24), v1, v2,
                   m.bool(at + 56));
}

static Progress getProgress(Message m, int at) {
  int t1 = m.u8(at + 32);
  String v1 = null;
  if (t1 == 1) {
    v1 = m.text(at + 36);
  }
  return new Progress(m.u64(at), m.u64(at + 8), m.u64(at + 16), m.u64(at + 24), v1);
}

static SearchError getSearchError(Message m, int at) {
  int t1 = m.u8(at);
  SearchError v1;
  if (t1 == 0) {
    v1 = new SearchError.Pattern(m.text(at + 4));
  } else if (t1 == 1) {
    v1 = new SearchError.Glob(m.text(at + 4));
  } else {
    v1 = new SearchError.Directory(m.text(at + 4));
  }
  return v1;
}

static void checkSearchError(Message m, int at) {
  int t1 = m.checkTag(at, 1, 3);
  if (t1 == 0) {
    m.checkText(at + 4);
  } else if (t1 == 1) {
    m.checkText(at + 4);
  } else if (t1 == 2) {
    m.checkText(at + 4);
  }
}
