package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"
)

// ErrMalformed is the reason why a message is refused.
var ErrMalformed = errors.New("the message is malformed")

// Message is a message that is checked once and then read. The first failure of a check is kept: from
// then on, the checks that return a count or a discriminant return 0. The functions that read are only
// called after Close has returned no error.
type Message struct {
	data    []byte
	err     error
	floor   int // the end of the last tail: tails are in order and do not overlap
	handles int
	met     int // handles that the value has referred to
}

// NewMessage returns a message that is not checked yet. The values that are read from it may refer to
// data, which must not change.
func NewMessage(data []byte) Message {
	return Message{data: data}
}

// Open checks the header and returns the offset of the root, which has size bytes.
func (m *Message) Open(layout uint32, size int) int {
	length := len(m.data)
	if length < headerSize || length > maxSize || m.number(0) != length || m.U32(4) != layout {
		m.fail()
		return 0
	}
	m.handles = m.number(8)
	root := headerSize + 8*m.handles
	if m.number(12) != root || root+size > length {
		m.fail()
		return 0
	}
	m.floor = root + size
	return root
}

// Root returns the offset of the root of a message that the core has checked.
func (m *Message) Root() int {
	return m.number(12)
}

// Close ends the check.
func (m *Message) Close() error {
	if m.err == nil && m.met != m.handles {
		m.fail()
	}
	return m.err
}

func (m *Message) fail() {
	m.err = ErrMalformed
}

func (m *Message) number(at int) int {
	return int(m.U32(at))
}

// Bool gets a bool.
func (m *Message) Bool(at int) bool {
	return m.data[at] != 0
}

// U8 gets a number.
func (m *Message) U8(at int) uint8 {
	return m.data[at]
}

// U16 gets a number.
func (m *Message) U16(at int) uint16 {
	return binary.LittleEndian.Uint16(m.data[at:])
}

// U32 gets a number.
func (m *Message) U32(at int) uint32 {
	return binary.LittleEndian.Uint32(m.data[at:])
}

// U64 gets a number.
func (m *Message) U64(at int) uint64 {
	return binary.LittleEndian.Uint64(m.data[at:])
}

// S8 gets a number.
func (m *Message) S8(at int) int8 {
	return int8(m.U8(at))
}

// S16 gets a number.
func (m *Message) S16(at int) int16 {
	return int16(m.U16(at))
}

// S32 gets a number.
func (m *Message) S32(at int) int32 {
	return int32(m.U32(at))
}

// S64 gets a number.
func (m *Message) S64(at int) int64 {
	return int64(m.U64(at))
}

// F32 gets a number.
func (m *Message) F32(at int) float32 {
	return math.Float32frombits(m.U32(at))
}

// F64 gets a number.
func (m *Message) F64(at int) float64 {
	return math.Float64frombits(m.U64(at))
}

// Char gets a Unicode scalar value.
func (m *Message) Char(at int) rune {
	return rune(m.U32(at))
}

// Text gets a string.
func (m *Message) Text(at int) string {
	first := m.number(at)
	return string(m.data[first : first+m.number(at+4)])
}

// First returns the offset of a list's first element; 0 after a failure.
func (m *Message) First(at int) int {
	if m.err != nil {
		return 0
	}
	return m.number(at)
}

// Count returns the number of a list's elements.
func (m *Message) Count(at int) int {
	return m.number(at + 4)
}

// Handle gets a handle.
func (m *Message) Handle(at int) uint64 {
	return m.U64(headerSize + 8*m.number(at))
}

// Bytes gets a list of bytes, which is a part of the message.
func (m *Message) Bytes(at int) []byte {
	first, count := m.number(at), m.number(at+4)
	return m.data[first : first+count : first+count]
}

// GetNumbers gets a list of numbers.
func GetNumbers[T Number](m *Message, at int) []T {
	items := make([]T, m.Count(at))
	copy(bytesOf(items), m.data[m.First(at):])
	return items
}

// GetItems gets count numbers in place.
func GetItems[T Number](m *Message, at, count int) []T {
	items := make([]T, count)
	copy(bytesOf(items), m.data[at:])
	return items
}

// CheckBool checks a bool.
func (m *Message) CheckBool(at int) {
	if m.err == nil && m.data[at] > 1 {
		m.fail()
	}
}

// CheckChar checks a Unicode scalar value.
func (m *Message) CheckChar(at int) {
	if m.err == nil && !utf8.ValidRune(m.Char(at)) {
		m.fail()
	}
}

// CheckList checks the bounds of a list and returns the number of its elements; 0 after a failure.
func (m *Message) CheckList(at, size, align int) int {
	if m.err != nil {
		return 0
	}
	first, count := m.First(at), m.Count(at)
	if count == 0 || size == 0 {
		if first != 0 || count > maxUnsized {
			m.fail()
			return 0
		}
		return count
	}
	end := first + count*size
	if first%align != 0 || first < m.floor || end > len(m.data) {
		m.fail()
		return 0
	}
	m.floor = end
	return count
}

// CheckText checks a string.
func (m *Message) CheckText(at int) {
	count := m.CheckList(at, 1, 1)
	if m.err != nil {
		return
	}
	if first := m.First(at); !utf8.Valid(m.data[first : first+count]) {
		m.fail()
	}
}

// CheckTag checks a discriminant and returns it; 0 after a failure.
func (m *Message) CheckTag(at, size, count int) int {
	if m.err != nil {
		return 0
	}
	tag := m.word(at, size)
	if tag >= count {
		m.fail()
		return 0
	}
	return tag
}

// CheckFlags checks that only the lowest count bits are set.
func (m *Message) CheckFlags(at, size, count int) {
	if m.err == nil && m.word(at, size)>>count != 0 {
		m.fail()
	}
}

// CheckHandle checks a handle: they are numbered in the order of their fields.
func (m *Message) CheckHandle(at int) {
	if m.err == nil && (m.number(at) != m.met || m.met >= m.handles) {
		m.fail()
	}
	m.met++
}

// word gets the unsigned number of size bytes.
func (m *Message) word(at, size int) int {
	switch size {
	case 1:
		return int(m.U8(at))
	case 2:
		return int(m.U16(at))
	default:
		return m.number(at)
	}
}
