package service

import (
	"context"
	"runtime"
	"sync/atomic"

	"thalweg.dev/go/thalweg/guest"
	"thalweg.dev/go/thalweg/tests/service/guest-go/probe"
)

// Misbehave does what the guest of the same name in C does, as far as that is possible in Go.
func (s *service) Misbehave(ctx context.Context, how uint32) (string, error) {
	core, call := guest.Raw(ctx)
	switch how {
	case 0: // no message
		answer(core, call, guest.OK, nil)
		if code := answer(core, call, guest.OK, make([]byte, 64)); code != guest.GuestLost {
			return "", &guest.Error{Code: guest.BadArgument, Message: "a malformed answer was accepted"}
		}
		return "", nil
	case 1: // a text that is not UTF-8
		return "caf\xe9", nil
	case 2: // twice
		if code := answerText(core, call, "first"); code != guest.OK {
			return "", &guest.Error{Code: guest.BadArgument, Message: "the answer was refused"}
		}
		return "second", nil
	case 3: // another call's number
		if code := answerText(core, call+1, "no"); code != guest.Stale && code != guest.BadArgument {
			return "", errUnexpected
		}
		return "refused", nil
	case 4: // never
		<-ctx.Done()
		atomic.AddInt64(cancels, 1)
		return "", ctx.Err()
	case 5:
		panic("it went wrong")
	case 6: // an outcome that it cannot cause
		for _, code := range []guest.Code{7, 99} {
			if fail(core, call, code) != guest.BadArgument {
				return "", errUnexpected
			}
		}
		return "refused", nil
	case 7: // handles that are none
		if object(core, call, 77) == guest.OK {
			return "", errUnexpected
		}
		return "refused", nil
	case 8: // a handle in a result that has none
		answerHandle(core, call)
		return "", nil
	case 9: // changes its arguments, which are a copy
		return "written", nil
	case 10: // an error of the wrong type
		answerError(core, call)
		return "", nil
	case 11: // a stream of a function that has none, and one that is none
		if !refusesStreams(core, call) {
			return "", errUnexpected
		}
		return "refused", nil
	case 13: // ends its goroutine
		runtime.Goexit()
	case 15: // an outcome that it cannot cause, as its error
		return "", &guest.Error{Code: guest.Closed, Message: "something was closed"}
	case 14: // a signal in Go code
		var none *service
		none.sum++
	}
	return "", probe.TroubleBecause{Value: "no such case"}
}
