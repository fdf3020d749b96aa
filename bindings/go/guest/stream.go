package guest

import (
	"iter"

	"thalweg.dev/go/thalweg/wire"
)

// Element is how records of a stream are written.
type Element[T any] struct {
	Size int
	Put  func(w *wire.Writer, at int, value T)
}

// NoElement is an element that carries nothing.
var NoElement = Element[struct{}]{Put: func(*wire.Writer, int, struct{}) {}}

// AnswerStream ends the call with a stream, whose records are those of the sequence. It is iterated on
// a goroutine of its own. An error ends the stream.
func AnswerStream[T any](c *Call, records iter.Seq2[T, error], element Element[T], encode Encode) {
	if records == nil {
		c.lost("the method returned nil instead of a stream")
		return
	}
	startStream(c, func(p *port, handle uint64) {
		w := newRecordWriter(p, handle, element)
		w.end(encode, func() error { return w.writeAll(records) })
	})
}

// AnswerFuture ends the call with a future, whose value the function returns. It runs on a goroutine of
// its own.
func AnswerFuture[T any](c *Call, value func() (T, error), element Element[T], encode Encode) {
	if value == nil {
		c.lost("the method returned nil instead of a future")
		return
	}
	startStream(c, func(p *port, handle uint64) {
		w := newRecordWriter(p, handle, element)
		w.end(encode, func() error {
			result, err := value()
			if err == nil {
				w.add(result)
			}
			return err
		})
	})
}

// startStream ends the call with a stream, and starts the goroutine that writes it.
func startStream(c *Call, write func(p *port, handle uint64)) {
	if !c.answering() {
		return
	}
	p := c.state.port
	handle, code := p.core.answerStream(c.handle)
	if code != OK {
		return
	}
	c.isStream = true
	c.state.enter()
	go func() {
		defer c.state.leave()
		defer c.release()
		write(p, handle)
	}()
}
