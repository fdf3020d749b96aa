// The part of a Go codec that does not depend on types: a writer, and a message that is checked and
// then read. Both remember the first failure, and do nothing after it.
package main

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

const (
	headerSize = 16
	maxSize    = 0x7fffffff
	maxUnsized = 65536
)

// Result is a value or an error.
type Result[T, E any] struct {
	IsErr bool
	Ok    T
	Err   E
}

type number interface {
	uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64
}

func some[T any](value T) *T {
	return &value
}

// Writer writes a message.
type Writer struct {
	Data    []byte
	Err     error
	handles int
	used    int
}

// Begin begins a message and returns the offset of its root.
func (w *Writer) Begin(layout uint32, handles, size int) int {
	root := headerSize + 8*handles
	w.Data = make([]byte, root+size)
	w.Err = nil
	w.handles = handles
	w.used = 0
	binary.LittleEndian.PutUint32(w.Data[4:], layout)
	binary.LittleEndian.PutUint32(w.Data[8:], uint32(handles))
	binary.LittleEndian.PutUint32(w.Data[12:], uint32(root))
	return root
}

// End ends the message.
func (w *Writer) End() ([]byte, error) {
	binary.LittleEndian.PutUint32(w.Data, uint32(len(w.Data)))
	return w.Data, w.Err
}

// Fail remembers a failure.
func (w *Writer) Fail(what string) {
	if w.Err == nil {
		w.Err = errors.New(what)
	}
}

func (w *Writer) items(at int, items any) {
	if w.Err != nil {
		return
	}
	if _, err := binary.Encode(w.Data[at:], binary.LittleEndian, items); err != nil {
		w.Fail(err.Error())
	}
}

func (w *Writer) Bool(at int, value bool)   { w.items(at, value) }
func (w *Writer) U8(at int, value uint8)    { w.items(at, value) }
func (w *Writer) U16(at int, value uint16)  { w.items(at, value) }
func (w *Writer) U32(at int, value uint32)  { w.items(at, value) }
func (w *Writer) U64(at int, value uint64)  { w.items(at, value) }
func (w *Writer) S8(at int, value int8)     { w.items(at, value) }
func (w *Writer) S16(at int, value int16)   { w.items(at, value) }
func (w *Writer) S32(at int, value int32)   { w.items(at, value) }
func (w *Writer) S64(at int, value int64)   { w.items(at, value) }
func (w *Writer) F32(at int, value float32) { w.items(at, value) }
func (w *Writer) F64(at int, value float64) { w.items(at, value) }

func (w *Writer) Char(at int, value rune) {
	if !utf8.ValidRune(value) {
		w.Fail("a Unicode scalar value is expected")
	}
	w.items(at, value)
}

func (w *Writer) Text(at int, value string) {
	if !utf8.ValidString(value) {
		w.Fail("valid UTF-8 is expected")
	}
	if first := w.List(at, len(value), 1, 1); first > 0 {
		copy(w.Data[first:], value)
	}
}

// List begins a list and returns the offset of its first element; 0 if it has none, or none with a
// size, or after a failure.
func (w *Writer) List(at, count, size, align int) int {
	if count == 0 || w.Err != nil {
		return 0
	}
	if size == 0 {
		if count > maxUnsized {
			w.Fail("the list is too long")
		}
		w.items(at+4, uint32(count))
		return 0
	}
	first := (len(w.Data) + align - 1) / align * align
	if count > (maxSize-first)/size {
		w.Fail("the message is too large")
		return 0
	}
	w.Data = append(w.Data, make([]byte, first+count*size-len(w.Data))...)
	w.items(at, uint32(first))
	w.items(at+4, uint32(count))
	return first
}

func (w *Writer) Handle(at int, value uint64) {
	if w.used < w.handles {
		w.items(headerSize+8*w.used, value)
		w.items(at, uint32(w.used))
	}
	w.used++
}

// PutNumbers puts a list of numbers.
func PutNumbers[T number](w *Writer, at int, items []T) {
	size := binary.Size(T(0))
	if first := w.List(at, len(items), size, size); first > 0 {
		w.items(first, items)
	}
}

// PutItems puts numbers in place.
func PutItems[T number](w *Writer, at int, items []T) {
	w.items(at, items)
}

// Message is a message that is checked and then read.
type Message struct {
	Data    []byte
	Err     error
	floor   int
	handles int
	met     int
}

var errMalformed = errors.New("malformed message")

func (m *Message) fail() {
	m.Err = errMalformed
}

// Open checks the header and returns the offset of the root, which has size bytes.
func (m *Message) Open(layout uint32, size int) int {
	length := len(m.Data)
	if length < headerSize || length > maxSize || m.Number(0) != length || m.U32(4) != layout {
		m.fail()
		return 0
	}
	m.handles = m.Number(8)
	root := headerSize + 8*m.handles
	if m.Number(12) != root || root+size > length {
		m.fail()
		return 0
	}
	m.floor = root + size
	return root
}

// Close ends the check.
func (m *Message) Close() error {
	if m.Err == nil && m.met != m.handles {
		m.fail()
	}
	return m.Err
}

func (m *Message) items(at int, items any) {
	if _, err := binary.Decode(m.Data[at:], binary.LittleEndian, items); err != nil {
		panic(err)
	}
}

func get[T number](m *Message, at int) T {
	var value T
	m.items(at, &value)
	return value
}

func (m *Message) Number(at int) int  { return int(m.U32(at)) }
func (m *Message) Bool(at int) bool   { return m.Data[at] != 0 }
func (m *Message) U8(at int) uint8    { return m.Data[at] }
func (m *Message) U16(at int) uint16  { return get[uint16](m, at) }
func (m *Message) U32(at int) uint32  { return binary.LittleEndian.Uint32(m.Data[at:]) }
func (m *Message) U64(at int) uint64  { return get[uint64](m, at) }
func (m *Message) S8(at int) int8     { return get[int8](m, at) }
func (m *Message) S16(at int) int16   { return get[int16](m, at) }
func (m *Message) S32(at int) int32   { return get[int32](m, at) }
func (m *Message) S64(at int) int64   { return get[int64](m, at) }
func (m *Message) F32(at int) float32 { return get[float32](m, at) }
func (m *Message) F64(at int) float64 { return get[float64](m, at) }
func (m *Message) Char(at int) rune   { return get[int32](m, at) }

func (m *Message) Text(at int) string {
	first := m.Number(at)
	return string(m.Data[first : first+m.Number(at+4)])
}

func (m *Message) Handle(at int) uint64 { return m.U64(headerSize + 8*m.Number(at)) }

// GetNumbers gets a list of numbers.
func GetNumbers[T number](m *Message, at int) []T {
	return GetItems[T](m, m.Number(at), m.Number(at+4))
}

// GetItems gets numbers in place.
func GetItems[T number](m *Message, at, count int) []T {
	items := make([]T, count)
	m.items(at, items)
	return items
}

func (m *Message) CheckBool(at int) {
	if m.Err == nil && m.Data[at] > 1 {
		m.fail()
	}
}

func (m *Message) CheckChar(at int) {
	if m.Err == nil && !utf8.ValidRune(m.Char(at)) {
		m.fail()
	}
}

// CheckList returns the number of elements; 0 after a failure.
func (m *Message) CheckList(at, size, align int) int {
	if m.Err != nil {
		return 0
	}
	first, count := m.Number(at), m.Number(at+4)
	if count == 0 || size == 0 {
		if first != 0 || count > maxUnsized {
			m.fail()
			return 0
		}
		return count
	}
	end := first + count*size
	if first%align != 0 || first < m.floor || end > len(m.Data) {
		m.fail()
		return 0
	}
	m.floor = end
	return count
}

func (m *Message) CheckText(at int) {
	count := m.CheckList(at, 1, 1)
	if m.Err == nil && !utf8.Valid(m.Data[m.Number(at):m.Number(at)+count]) {
		m.fail()
	}
}

func (m *Message) word(at, size int) int {
	switch size {
	case 1:
		return int(m.U8(at))
	case 2:
		return int(m.U16(at))
	default:
		return m.Number(at)
	}
}

// CheckTag returns the number; 0 after a failure.
func (m *Message) CheckTag(at, size, count int) int {
	if m.Err != nil {
		return 0
	}
	tag := m.word(at, size)
	if tag >= count {
		m.fail()
		return 0
	}
	return tag
}

func (m *Message) CheckFlags(at, size, count int) {
	if m.Err == nil && m.word(at, size)>>count != 0 {
		m.fail()
	}
}

func (m *Message) CheckHandle(at int) {
	if m.Err == nil && (m.Number(at) != m.met || m.met >= m.handles) {
		m.fail()
	}
	m.met++
}
