package guest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"thalweg.dev/go/thalweg/wire"
)

// Code is the outcome of a call. The numbers are those of tw_code in thalweg.h.
type Code uint32

// The outcomes that a guest can cause or see.
const (
	OK            Code = 0
	ErrorPayload  Code = 1 // the error of the function
	Cancelled     Code = 2
	TimedOut      Code = 3
	GuestLost     Code = 4
	GuestPanicked Code = 5
	Overloaded    Code = 6
	Closed        Code = 8
	Stale         Code = 9
	BadArgument   Code = 10
	Forked        Code = 12
	Interrupted   Code = 13
	WouldPark     Code = 14
)

// Error is an outcome with its reason. A method that returns one ends its call with this outcome.
type Error struct {
	Code    Code
	Message string
}

// Error returns the reason.
func (e *Error) Error() string {
	return e.Message
}

// Failure is an error of a function whose type has no name in WIT, such as `result<u64, u32>`.
type Failure[T any] struct {
	Value T
}

// Error describes the value.
func (f Failure[T]) Error() string {
	return fmt.Sprint(f.Value)
}

// TextOf returns the text of an error of a function `result<T, string>`: of every error that is no other
// outcome.
func TextOf(err error) (text string, ok bool) {
	var outcome *Error
	if errors.As(err, &outcome) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "", false
	}
	return err.Error(), true
}

// nothing is the layout of a message without a value.
const nothing = 0x8602484e

// EncodeNothing writes the error of a function whose errors carry nothing, as TextOf.
func EncodeNothing(w *wire.Writer, err error) bool {
	_, ok := TextOf(err)
	if ok {
		w.Begin(nothing, 0)
	}
	return ok
}

// outcomeOf returns the outcome for an error that is not the error of the function.
func outcomeOf(err error) (Code, string) {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known.Code, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut, err.Error()
	case errors.Is(err, context.Canceled):
		return Cancelled, err.Error()
	default:
		return GuestLost, err.Error()
	}
}

// panicText describes a panic: its value, and the functions that were running, innermost first. Only
// for the function that recovers.
func panicText(value any) string {
	var text strings.Builder
	fmt.Fprint(&text, value)
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == "" || strings.HasPrefix(frame.Function, modulePath) {
			break // where the runtime of guests begins
		}
		if !strings.HasPrefix(frame.Function, "runtime.") {
			fmt.Fprintf(&text, "\n  at %s:%d %s", filepath.Base(frame.File), frame.Line, frame.Function)
		}
		if !more {
			break
		}
	}
	return text.String()
}

// modulePath begins the names of the functions of this module.
const modulePath = "thalweg.dev/go/thalweg/guest."
