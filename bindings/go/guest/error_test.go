package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"thalweg.dev/go/thalweg/wire"
)

func TestOutcomeOfAnError(t *testing.T) {
	for _, test := range []struct {
		err  error
		code Code
	}{
		{errors.New("no"), GuestLost},
		{context.Canceled, Cancelled},
		{fmt.Errorf("while waiting: %w", context.DeadlineExceeded), TimedOut},
		{fmt.Errorf("wrapped: %w", &Error{Overloaded, "full"}), Overloaded},
	} {
		code, text := outcomeOf(test.err)
		if code != test.code || text != test.err.Error() {
			t.Errorf("%v: %d, %q", test.err, code, text)
		}
		if _, isError := TextOf(test.err); isError != (test.code == GuestLost) {
			t.Errorf("%v is an error of a function: %v", test.err, isError)
		}
	}
}

func TestErrorWithoutPayloadIsAnEmptyMessage(t *testing.T) {
	var w wire.Writer
	if !EncodeNothing(&w, errors.New("no")) {
		t.Fatal("it is an error of the function")
	}
	data, _ := w.End()
	m := wire.NewMessage(data)
	m.Open(nothing, 0)
	if err := m.Close(); err != nil || len(data) != 16 {
		t.Error(err, data)
	}
}

func TestFailureOfATypeWithoutAName(t *testing.T) {
	var found Failure[uint32]
	if !errors.As(fmt.Errorf("wrapped: %w", Failure[uint32]{7}), &found) || found.Value != 7 || found.Error() != "7" {
		t.Error(found)
	}
}

func TestPanicTextEndsWhereTheRuntimeOfGuestsBegins(t *testing.T) {
	defer func() {
		text := panicText(recover())
		if !strings.HasPrefix(text, "it went wrong") || strings.Contains(text, "runtime.") {
			t.Error(text)
		}
	}()
	panic("it went wrong")
}
