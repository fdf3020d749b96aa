type Options struct {
	Fixed bool
	IgnoreCase bool
	Hidden bool
	IgnoreFiles bool
	Globs []string
}

type Match struct {
	Path string
	Line uint64
	Column uint64
	Text string
	PathBytes *[]byte
	TextBytes *[]byte
	Cut bool
}

type Progress struct {
	Files uint64
	Bytes uint64
	Matches uint64
	Unreadable uint64
	Problem *string
}

type SearchError interface{ isSearchError() }

type SearchErrorPattern struct{ Value string }

func (SearchErrorPattern) isSearchError() {}

type SearchErrorGlob struct{ Value string }

func (SearchErrorGlob) isSearchError() {}

type SearchErrorDirectory struct{ Value string }

func (SearchErrorDirectory) isSearchError() {}

func putOptions(w *Writer, at int, value *Options) {
	w.Bool(at, value.Fixed)
	w.Bool(at + 1, value.IgnoreCase)
	w.Bool(at + 2, value.Hidden)
	w.Bool(at + 3, value.IgnoreFiles)
	v1 := value.Globs
	n2 := len(v1)
	p2 := w.List(at + 4, n2, 8, 4)
	for i2 := range n2 {
		w.Text(p2 + i2 * 8, v1[i2])
	}
}

func getMatch(m *Message, at int) Match {
	t1 := m.U8(at + 32)
	var v1 *[]byte
	if t1 == 1 {
		v1 = some(GetNumbers[uint8](m, at + 36))
	}
	t2 := m.U8(at + 44)
	var v2 *[]byte
	if t2 == 1 {
		v2 = some(GetNumbers[uint8](m, at + 48))
	}
	return Match{m.Text(at), m.U64(at + 8), m.U64(at + 16), m.Text(at + 24), v1, v2, m.Bool(at + 56)}
}

func getProgress(m *Message, at int) Progress {
	t1 := m.U8(at + 32)
	var v1 *string
	if t1 == 1 {
		v1 = some(m.Text(at + 36))
	}
	return Progress{m.U64(at), m.U64(at + 8), m.U64(at + 16), m.U64(at + 24), v1}
}

func getSearchError(m *Message, at int) SearchError {
	t1 := m.U8(at)
	var v1 SearchError
	if t1 == 0 {
		v1 = SearchErrorPattern{m.Text(at + 4)}
	} else if t1 == 1 {
		v1 = SearchErrorGlob{m.Text(at + 4)}
	} else {
		v1 = SearchErrorDirectory{m.Text(at + 4)}
	}
	return v1
}

func checkSearchError(m *Message, at int) {
	t1 := m.CheckTag(at, 1, 3)
	if t1 == 0 {
		m.CheckText(at + 4)
	} else if t1 == 1 {
		m.CheckText(at + 4)
	} else if t1 == 2 {
		m.CheckText(at + 4)
	}
}
