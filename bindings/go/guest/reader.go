package guest

/*
#include "core.h"
*/
import "C"

import (
	"context"
	"iter"
	"sync/atomic"

	"thalweg.dev/go/thalweg/wire"
)

// reader is the reading end of a stream or future that is a parameter. One goroutine reads it.
//
//	unread -> reading -> closed   it is read once, also after its call was answered
//	unread -> closed              the call has ended, and so has the stream that it returned
type reader struct {
	port    *port
	handle  uint64
	isBrief bool // of a method that must not wait
	state   atomic.Int32
	waiter  *waiter
	element C.tw_guest_message // the last one
}

const (
	unread int32 = iota
	reading
	closed
)

// openReader takes a stream of the arguments. If it cannot be used, the call ends: see Call.IsRefused.
func (c *Call) openReader(stream uint64) *reader {
	if c.isAnswered {
		return nil
	}
	p := c.state.port
	handle, err := p.core.openReader(c.handle, stream)
	if err != nil {
		c.fail(err.Code, err.Message)
		return nil
	}
	r := &reader{port: p, handle: handle, isBrief: c.method.flags&Brief != 0}
	c.readers = append(c.readers, r)
	return r
}

// begin begins to read. Close the reader afterwards.
func (r *reader) begin() *Error {
	if !r.state.CompareAndSwap(unread, reading) {
		return &Error{Stale, "a parameter that is a stream is read once, and not for the first time after its call"}
	}
	r.waiter = r.port.newWaiter()
	return nil
}

// receive waits for the next element until done is closed. The code Closed means that the stream has ended
// regularly.
func (r *reader) receive(done <-chan struct{}) (*wire.Message, *Error) {
	for {
		data, err := r.port.core.receive(r)
		if err == nil {
			m := wire.NewMessage(data)
			return &m, nil
		}
		if err != errNotReady {
			return nil, err
		}
		if r.isBrief {
			return nil, errBrief
		}
		select {
		case <-r.waiter.ready:
		case <-done:
			return nil, errDone
		}
	}
}

func (r *reader) close() {
	r.state.Store(closed)
	r.waiter.end()
	r.port.core.closeReader(r)
}

func (r *reader) closeUnread() {
	if r.state.CompareAndSwap(unread, closed) {
		r.port.core.closeReader(r)
	}
}

var (
	// errNotReady is returned by functions of core that do not wait. An event follows.
	errNotReady = &Error{WouldPark, "there is nothing yet"}
	errBrief    = &Error{WouldPark, "a brief method must not wait"}
	errDone     = &Error{Cancelled, "the context has ended"}
)

// ReadNothing reads an element that carries nothing.
func ReadNothing(*wire.Message, int) struct{} {
	return struct{}{}
}

// ReceiveStream returns the elements of a stream in the arguments.
func ReceiveStream[T any](c *Call, stream uint64, read func(m *wire.Message, at int) T) iter.Seq2[T, error] {
	r := c.openReader(stream)
	return func(yield func(T, error) bool) {
		var none T
		if err := r.begin(); err != nil {
			yield(none, err)
			return
		}
		defer r.close()
		for {
			m, err := r.receive(nil)
			switch {
			case err == nil:
				if !yield(read(m, m.Root()), nil) {
					return
				}
			case err.Code == Closed:
				return
			default:
				yield(none, err)
				return
			}
		}
	}
}

// ReceiveFuture returns a function that waits for the value of a future in the arguments.
func ReceiveFuture[T any](c *Call, future uint64, read func(m *wire.Message, at int) T) func(context.Context) (T, error) {
	r := c.openReader(future)
	return func(ctx context.Context) (T, error) {
		var none T
		if err := r.begin(); err != nil {
			return none, err
		}
		defer r.close()
		m, err := r.receive(doneOf(ctx))
		switch {
		case err == nil:
			return read(m, m.Root()), nil
		case err == errDone:
			return none, context.Cause(ctx)
		default:
			return none, err
		}
	}
}

// doneOf returns when to stop waiting because of a context. What a call waits for ends with the call.
func doneOf(ctx context.Context) <-chan struct{} {
	if _, ok := ctx.(*Call); ok {
		return nil
	}
	return ctx.Done()
}
