package wire

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"unicode/utf8"
)

const layout = 0x12345678

// A record of the tests: { flag: bool, letter: char, name: string, numbers: list<f64>, key: list<u16, 3>,
// names: list<string>, tag: enum of 3 }.
const rootSize = 48

type value struct {
	flag    bool
	letter  rune
	name    string
	numbers []float64
	key     [3]uint16
	names   []string
	tag     uint8
}

func put(w *Writer, at int, v *value) {
	w.Bool(at, v.flag)
	w.Char(at+4, v.letter)
	w.Text(at+8, v.name)
	PutNumbers(w, at+16, v.numbers)
	PutItems(w, at+24, v.key[:])
	first := w.List(at+32, len(v.names), 8, 4)
	for i, name := range v.names {
		w.Text(first+i*8, name)
	}
	w.U8(at+40, v.tag)
}

func check(m *Message, at int) {
	m.CheckBool(at)
	m.CheckChar(at + 4)
	m.CheckText(at + 8)
	m.CheckList(at+16, 8, 8)
	count := m.CheckList(at+32, 8, 4)
	first := m.First(at + 32)
	for i := range count {
		m.CheckText(first + i*8)
	}
	m.CheckTag(at+40, 1, 3)
}

func get(m *Message, at int) *value {
	v := &value{
		flag:    m.Bool(at),
		letter:  m.Char(at + 4),
		name:    m.Text(at + 8),
		numbers: GetNumbers[float64](m, at+16),
		key:     [3]uint16(GetItems[uint16](m, at+24, 3)),
		tag:     m.U8(at + 40),
	}
	first := m.First(at + 32)
	for i := range m.Count(at + 32) {
		v.names = append(v.names, m.Text(first+i*8))
	}
	return v
}

func written(t testing.TB, v *value) []byte {
	var w Writer
	put(&w, w.Begin(layout, rootSize), v)
	message, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func read(data []byte) (*value, error) {
	m := NewMessage(data)
	at := m.Open(layout, rootSize)
	check(&m, at)
	if err := m.Close(); err != nil {
		return nil, err
	}
	return get(&m, at), nil
}

var values = []*value{
	{},
	{flag: true, letter: 'é', name: "a name", numbers: []float64{1, math.Inf(-1), 0.5}, key: [3]uint16{1, 2, 65535}, names: []string{"", "x", "yy"}, tag: 2},
	{name: "\x00", names: []string{"", ""}},
}

func equal(a, b *value) bool {
	return a.flag == b.flag && a.letter == b.letter && a.name == b.name && a.key == b.key && a.tag == b.tag &&
		slices.Equal(a.names, b.names) && slices.EqualFunc(a.numbers, b.numbers, func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b)
	})
}

func TestValueIsReadAsItWasWritten(t *testing.T) {
	for _, v := range values {
		got, err := read(written(t, v))
		if err != nil || !equal(got, v) {
			t.Errorf("%+v is read as %+v, %v", v, got, err)
		}
	}
}

func TestWriterIsUsedAgainWithoutOldBytes(t *testing.T) {
	var w Writer
	put(&w, w.Begin(layout, rootSize), values[1])
	if _, err := w.End(); err != nil {
		t.Fatal(err)
	}
	put(&w, w.Begin(layout, rootSize), values[0])
	again, err := w.End()
	if err != nil || !bytes.Equal(again, written(t, values[0])) {
		t.Errorf("%x, %v", again, err)
	}
}

func TestBytesAreAPartOfTheMessage(t *testing.T) {
	var w Writer
	PutNumbers(&w, w.Begin(layout, 8), []uint8{1, 2, 3})
	data, _ := w.End()
	m := NewMessage(data)
	at := m.Open(layout, 8)
	m.CheckList(at, 1, 1)
	if m.Close() != nil {
		t.Fatal("it was just written")
	}
	got := m.Bytes(at)
	if !bytes.Equal(got, []byte{1, 2, 3}) || cap(got) != 3 {
		t.Error(got, cap(got))
	}
}

func TestWrongValuesFail(t *testing.T) {
	var w Writer
	w.Char(w.Begin(layout, 4), 0xd800)
	if _, err := w.End(); err == nil {
		t.Error("a surrogate is no scalar value")
	}
	at := w.Begin(layout, 8)
	w.List(at, maxUnsized+1, 0, 1)
	if _, err := w.End(); err == nil {
		t.Error("the list is too long")
	}
	at = w.Begin(layout, 8)
	w.List(at, math.MaxInt32, 8, 8)
	if _, err := w.End(); err == nil {
		t.Error("the message is too large")
	}
}

func TestEachDamagedHeaderIsRefused(t *testing.T) {
	data := written(t, values[1])
	for at := range headerSize {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0x41
		if _, err := read(damaged); err == nil {
			t.Errorf("byte %d may not be damaged", at)
		}
	}
	for length := range data {
		if _, err := read(data[:length]); err == nil {
			t.Errorf("%d bytes are too short", length)
		}
	}
}

func TestTailsMustBeInOrder(t *testing.T) {
	data := written(t, &value{name: "ab", names: []string{"cd"}})
	m := NewMessage(data)
	root := m.Open(layout, rootSize)
	copy(data[root+32:root+36], data[root+8:root+12]) // both begin at the same place
	if _, err := read(data); err == nil {
		t.Error("the tails overlap")
	}
}

// Whatever the bytes are, they are refused, or read without a panic and written again.
func FuzzMessage(f *testing.F) {
	for _, v := range values {
		data := written(f, v)
		f.Add(data)
		for at := range data {
			damaged := bytes.Clone(data)
			damaged[at] ^= 0xff
			f.Add(damaged)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := read(data)
		if err != nil {
			return
		}
		if !utf8.ValidString(v.name) {
			t.Errorf("%q was accepted", v.name)
		}
		again, err := read(written(t, v))
		if err != nil || !equal(again, v) {
			t.Errorf("%+v is read again as %+v, %v", v, again, err)
		}
	})
}
