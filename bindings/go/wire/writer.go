// Package wire writes, checks and reads Thalweg's messages. Generated code uses it; a program itself
// does not need it.
//
// A message is a header, a table of handles, a root and tails. Numbers are little-endian. A string or
// list is the offset and the length of its tail, and the tails follow each other in the order in which
// the values are read.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
	"unsafe"
)

const (
	// The size of a message's header in bytes.
	headerSize = 16
	// The largest message: an offset or length fits an int32 in every language.
	maxSize = math.MaxInt32
	// The most elements of a list whose elements have no size.
	maxUnsized = 65536
)

// Number is a type that is stored in a message as it is in memory.
type Number interface {
	uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64
}

// Result is a result inside a value.
type Result[T, E any] struct {
	IsErr bool
	Ok    T
	Err   E
}

// Some returns a pointer to a value: an option that has one.
func Some[T any](value T) *T {
	return &value
}

// Writer writes a message, or records of a stream. The first failure is kept: later functions then do
// nothing, and End returns it. The zero value is ready for Begin.
type Writer struct {
	data    []byte
	err     error
	objects []Object // the resources that were put
	handles []uint64 // the table of handles
}

// Object is a resource that was put into a message.
type Object struct {
	Type  uint32
	Value any
}

// UseHandles makes the following messages refer to these handles, in the order in which resources are put.
// It forgets the resources of the message before. The table of handles is in front of the root, so a
// message with resources is written twice: first to find them.
func (w *Writer) UseHandles(handles []uint64) {
	w.objects, w.handles = nil, handles
}

// Objects returns the resources that were put since Begin.
func (w *Writer) Objects() []Object {
	return w.objects
}

// Begin begins a message and returns the offset of its root, which has size bytes. The buffer of an
// earlier message is used again.
func (w *Writer) Begin(layout uint32, size int) int {
	root := headerSize + 8*len(w.handles)
	w.reset(root + size)
	binary.LittleEndian.PutUint32(w.data[4:], layout)
	binary.LittleEndian.PutUint32(w.data[8:], uint32(len(w.handles)))
	binary.LittleEndian.PutUint32(w.data[12:], uint32(root))
	for i, handle := range w.handles {
		binary.LittleEndian.PutUint64(w.data[headerSize+8*i:], handle)
	}
	w.objects = w.objects[:0]
	return root
}

// BeginRecords begins records of a stream: bytes for adjacent records, whose tails follow.
func (w *Writer) BeginRecords(size int) {
	w.reset(size)
}

func (w *Writer) reset(size int) {
	w.err = nil
	if size > cap(w.data) {
		w.data = make([]byte, size, max(2*size, 256))
		return
	}
	w.data = w.data[:size]
	clear(w.data)
}

// End ends a message, which is valid until the next Begin.
func (w *Writer) End() ([]byte, error) {
	binary.LittleEndian.PutUint32(w.data, uint32(len(w.data)))
	return w.data, w.err
}

// Records returns the records and their tails, which are valid until the next BeginRecords.
func (w *Writer) Records() ([]byte, error) {
	return w.data, w.err
}

// Len returns the number of bytes so far.
func (w *Writer) Len() int {
	return len(w.data)
}

// Fail makes the message fail.
func (w *Writer) Fail(what string) {
	if w.err == nil {
		w.err = errors.New(what)
	}
}

// Bool puts a bool.
func (w *Writer) Bool(at int, value bool) {
	if value {
		w.data[at] = 1
	}
}

// U8 puts a number.
func (w *Writer) U8(at int, value uint8) {
	w.data[at] = value
}

// U16 puts a number.
func (w *Writer) U16(at int, value uint16) {
	binary.LittleEndian.PutUint16(w.data[at:], value)
}

// U32 puts a number.
func (w *Writer) U32(at int, value uint32) {
	binary.LittleEndian.PutUint32(w.data[at:], value)
}

// U64 puts a number.
func (w *Writer) U64(at int, value uint64) {
	binary.LittleEndian.PutUint64(w.data[at:], value)
}

// S8 puts a number.
func (w *Writer) S8(at int, value int8) {
	w.U8(at, uint8(value))
}

// S16 puts a number.
func (w *Writer) S16(at int, value int16) {
	w.U16(at, uint16(value))
}

// S32 puts a number.
func (w *Writer) S32(at int, value int32) {
	w.U32(at, uint32(value))
}

// S64 puts a number.
func (w *Writer) S64(at int, value int64) {
	w.U64(at, uint64(value))
}

// F32 puts a number.
func (w *Writer) F32(at int, value float32) {
	w.U32(at, math.Float32bits(value))
}

// F64 puts a number.
func (w *Writer) F64(at int, value float64) {
	w.U64(at, math.Float64bits(value))
}

// Char puts a Unicode scalar value.
func (w *Writer) Char(at int, value rune) {
	if !utf8.ValidRune(value) {
		w.Fail(fmt.Sprintf("%#x is no Unicode scalar value", value))
		return
	}
	w.U32(at, uint32(value))
}

// Resource puts a resource, which is not nil.
func (w *Writer) Resource(at int, kind uint32, value any) {
	if value == nil {
		w.Fail("a resource is nil")
		return
	}
	w.U32(at, uint32(len(w.objects)))
	w.objects = append(w.objects, Object{kind, value})
}

// Text puts a string. The core refuses a message with a string that is not UTF-8.
func (w *Writer) Text(at int, value string) {
	if first := w.List(at, len(value), 1, 1); first > 0 {
		copy(w.data[first:], value)
	}
}

// List begins a list of count elements of size bytes and returns the offset of the first one; 0 if
// there is none, if they have no size, or after a failure.
func (w *Writer) List(at, count, size, align int) int {
	if count == 0 || w.err != nil {
		return 0
	}
	if size == 0 {
		if count > maxUnsized {
			w.Fail(fmt.Sprintf("a list of elements without a size has %d elements, at most %d are possible", count, maxUnsized))
			return 0
		}
		w.U32(at+4, uint32(count))
		return 0
	}
	first := (len(w.data) + align - 1) / align * align
	if first > maxSize || count > (maxSize-first)/size {
		w.Fail("the message is larger than 2 GiB")
		return 0
	}
	w.data = append(w.data, make([]byte, first+count*size-len(w.data))...)
	w.U32(at, uint32(first))
	w.U32(at+4, uint32(count))
	return first
}

// PutNumbers puts a list of numbers.
func PutNumbers[T Number](w *Writer, at int, items []T) {
	size := int(unsafe.Sizeof(T(0)))
	if first := w.List(at, len(items), size, size); first > 0 {
		copy(w.data[first:], bytesOf(items))
	}
}

// PutItems puts numbers in place.
func PutItems[T Number](w *Writer, at int, items []T) {
	copy(w.data[at:], bytesOf(items))
}

// bytesOf returns the memory of numbers, which is that of a message: Thalweg supports only processors
// that are little-endian.
func bytesOf[T Number](items []T) []byte {
	if len(items) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&items[0])), len(items)*int(unsafe.Sizeof(items[0])))
}
