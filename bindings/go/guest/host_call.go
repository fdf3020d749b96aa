package guest

import (
	"context"

	"thalweg.dev/go/thalweg/wire"
)

// HostCall is a call of a host import.
type HostCall struct {
	ctx     context.Context
	number  uint32
	args    wire.Writer
	message wire.Message
}

// ErrHost is the error of a host import whose errors carry nothing.
var ErrHost error = &Error{ErrorPayload, "the host answered with an error"}

// CallHost begins a call of the host import with this number. Its arguments are written next.
func CallHost(ctx context.Context, number uint32) (*HostCall, *wire.Writer) {
	h := &HostCall{ctx: ctx, number: number}
	return h, &h.args
}

// Answer waits for the answer: the message of the result, or of the error if isOk is false.
func (h *HostCall) Answer() (m *wire.Message, isOk bool, err error) {
	args, err := h.args.End()
	if err != nil {
		return nil, false, &Error{BadArgument, err.Error()}
	}
	c, ok := h.ctx.Value(callKey{}).(*Call)
	switch {
	case !ok:
		return nil, false, &Error{BadArgument, "the context is not that of a call"}
	case c.method.flags&Brief != 0:
		return nil, false, errBrief
	}
	core, w := c.state.port.core, c.state.port.newWaiter()
	defer w.end()
	handle, failed := core.beginImport(c.handle, h.number, args, w)
	if failed != nil {
		return nil, false, failed
	}
	select {
	case <-w.ready:
	case <-doneOf(h.ctx):
		core.cancelImport(handle)
		return nil, false, context.Cause(h.ctx)
	}
	data, failed := core.importAnswer(handle)
	if failed != nil && failed.Code != ErrorPayload {
		return nil, false, failed
	}
	h.message = wire.NewMessage(data)
	return &h.message, failed == nil, nil
}
