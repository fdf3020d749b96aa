package guest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"thalweg.dev/go/thalweg/wire"
)

// Call is a call that the guest serves, and its context. One goroutine serves it; the methods of
// context.Context may be called by any.
type Call struct {
	state      *state
	handle     uint64
	method     *method
	deadline   uint64 // in nanoseconds of the core's clock
	args       []byte
	message    wire.Message
	writer     *wire.Writer
	isAnswered bool
	isInline   bool // the goroutine of the port serves the call
	urgency    urgency
	isStream   bool     // the context is used until the stream ends
	taken      []object // arguments that belong to the guest, while the arguments are read
	readers    []*reader

	isOver atomic.Bool // the call has ended without the guest

	mu    sync.Mutex
	ctx   context.Context // nil until it is used
	stop  func(cause error)
	cause error // why the context ends, if that was before it was used
}

// longestKept is the size of the largest message whose buffer is used again, in bytes.
const longestKept = 64 << 10

// writers have the buffers of messages.
var writers = sync.Pool{New: func() any { return new(wire.Writer) }}

// run serves the call.
func (c *Call) run() {
	defer c.end()
	if c.isOver.Load() {
		c.isAnswered = true
		return
	}
	service, err := c.state.open()
	if err != nil {
		c.fail(GuestLost, err.Error())
		return
	}
	c.method.serve(service, c)
}

// end ends the call if it has not ended, because of a panic or of runtime.Goexit.
func (c *Call) end() {
	if value := recover(); value != nil {
		c.fail(GuestPanicked, panicText(value))
	}
	c.lost("the guest has ended the call without an answer")
	if c.writer != nil && c.writer.Len() <= longestKept {
		c.writer.UseHandles(nil)
		writers.Put(c.writer)
	}
	if !c.isStream {
		c.release()
	}
}

// release ends the context, and the streams of the arguments whose reading has not begun.
func (c *Call) release() {
	c.closeUnread()
	c.endContext(context.Canceled)
}

// closeUnread closes the streams that were not read, before the caller has the answer: its next element is
// refused then. A stream that is the answer may still read them.
func (c *Call) closeUnread() {
	for _, r := range c.readers {
		r.closeUnread()
	}
}

// answering reports whether the call can be answered: once, and not after it has failed.
func (c *Call) answering() bool {
	if c.isAnswered {
		return false
	}
	c.isAnswered = true
	if !c.isInline {
		c.state.port.ended(c)
	}
	return true
}

func (c *Call) fail(code Code, text string) {
	if !c.answering() {
		return
	}
	c.closeUnread()
	core := c.state.port.core
	if code == GuestPanicked {
		c.state.port.answers.waitUntilSent()
	}
	if core.fail(c.handle, code, text) == BadArgument {
		core.fail(c.handle, GuestLost, text) // a guest cannot cause that outcome
	}
}

// lost ends the call because of a mistake of the guest.
func (c *Call) lost(why string) {
	if !c.isAnswered {
		c.fail(GuestLost, c.state.port.library.name+", "+c.method.name+": "+why)
	}
}

// Open checks the header of the arguments, and returns them with the offset of their root, which has
// size bytes.
func (c *Call) Open(layout uint32, size int) (*wire.Message, int) {
	c.message = wire.NewMessage(c.args)
	return &c.message, c.message.Open(layout, size)
}

// IsChecked ends the check of the arguments. If they are malformed, the call ends, and the result is
// false.
func (c *Call) IsChecked() bool {
	if err := c.message.Close(); err != nil {
		c.fail(BadArgument, err.Error())
		return false
	}
	return true
}

// Begin begins the message of the result, whose root has size bytes, and returns the offset of the
// root.
func (c *Call) Begin(layout uint32, size int) (*wire.Writer, int) {
	if c.writer == nil {
		c.writer = writers.Get().(*wire.Writer)
	}
	return c.writer, c.writer.Begin(layout, size)
}

// Answer ends the call with the message of the result.
func (c *Call) Answer() {
	c.answer(OK)
}

func (c *Call) answer(code Code) {
	message, err := c.writer.End()
	if err != nil {
		c.lost(err.Error())
		return
	}
	if c.answering() {
		c.closeUnread()
		c.state.port.answers.add(c.handle, code, message, c.urgency)
	}
}

// Encode writes the message of the error of a function. It returns false if err is another error.
type Encode func(w *wire.Writer, err error) bool

// Fail ends the call with the error of its function, or with another outcome. encode is nil for a
// function without an error.
func (c *Call) Fail(err error, encode Encode) {
	if encode != nil {
		w, _ := c.Begin(0, 0)
		if encode(w, err) {
			if c.give(w) {
				encode(w, err)
			}
			c.answer(ErrorPayload)
			return
		}
	}
	code, text := outcomeOf(err)
	c.fail(code, text)
}

// cancelled ends the context, because the call has ended without the guest.
func (c *Call) cancelled() {
	core := c.state.port.core
	why := core.check(c.handle)
	hasDeadlinePassed := c.deadline != forever && core.now() >= c.deadline
	c.isOver.Store(true)
	c.state.port.ended(c)
	switch {
	case hasDeadlinePassed:
		// The context has this deadline itself.
	case why != nil && why.Code == TimedOut:
		c.endContext(context.DeadlineExceeded)
	case why != nil && why.Code != Stale:
		c.endContext(why)
	default:
		c.endContext(&Error{Cancelled, "the call was cancelled"})
	}
}

func (c *Call) endContext(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop(cause)
	} else if c.cause == nil {
		c.cause = cause
	}
}

// context returns the context, which most calls do not need.
func (c *Call) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		ctx, stop := context.WithCancelCause(c.state.ctx)
		c.ctx, c.stop = ctx, stop
		if c.cause != nil {
			stop(c.cause)
		} else if c.deadline != forever {
			var stopTimer context.CancelFunc
			c.ctx, stopTimer = context.WithDeadline(ctx, c.state.port.core.until(c.deadline))
			c.stop = func(cause error) {
				stop(cause)
				stopTimer()
			}
		}
	}
	return c.ctx
}

// Deadline returns the deadline of the call.
func (c *Call) Deadline() (deadline time.Time, ok bool) {
	if c.deadline == forever {
		return time.Time{}, false
	}
	return c.context().Deadline()
}

// Done is closed when the call has ended. context.Cause returns the reason.
func (c *Call) Done() <-chan struct{} {
	return c.context().Done()
}

// Err returns why the call has ended.
func (c *Call) Err() error {
	return c.context().Err()
}

// Value returns nothing of the call's own.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.context().Value(key)
}

type callKey struct{}

// Raw returns the tw_guest_core and the handle of the call with this context, or of its parent, for
// functions of thalweg_guest.h that this package lacks.
func Raw(ctx context.Context) (core unsafe.Pointer, call uint64) {
	c, ok := ctx.Value(callKey{}).(*Call)
	if !ok {
		return nil, 0
	}
	return unsafe.Pointer(c.state.port.core.c), c.handle
}
