// Reads lines `ROOT HEX VERDICT` and compares the verdict of the generated code: `-` malformed, `+`
// well-formed, `=` also the bytes that the writer writes for its value.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"thalweg.dev/go/thalweg/wire"
)

type root struct {
	layout uint32
	size   int
	check  func(m *wire.Message, at int)
	trip   func(m *wire.Message, at int, w *wire.Writer, to int)
}

// passes checks and reads a message, and writes its value again.
func (r root) passes(data []byte) ([]byte, error) {
	m := wire.NewMessage(data)
	at := m.Open(r.layout, r.size)
	r.check(&m, at)
	if err := m.Close(); err != nil {
		return nil, err
	}
	var w wire.Writer
	r.trip(&m, at, &w, w.Begin(r.layout, r.size))
	return w.End()
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	count := 0
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		data, err := hex.DecodeString(words[1])
		if err != nil {
			panic(err)
		}
		written, err := roots[words[0]].passes(data)
		if (err != nil) != (words[2] == "-") {
			panic(fmt.Sprint(lines.Text(), ": ", err))
		}
		if words[2] == "=" && !bytes.Equal(written, data) {
			panic(fmt.Sprintf("%s: %x", lines.Text(), written))
		}
		if err == nil {
			again, err := roots[words[0]].passes(written)
			if err != nil || !bytes.Equal(again, written) {
				panic(fmt.Sprintf("%s: %x and %x", lines.Text(), written, again))
			}
		}
		count++
	}
	fmt.Println(count)
}
