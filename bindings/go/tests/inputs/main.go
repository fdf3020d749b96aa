// A guest of the tests that reads streams of its callers and calls its host. bindings/c/tests/guests/inputs.c is the
// same in C.
package main

/*
// The calls that run. Read by the tests through dlsym.
__attribute__((visibility("default"))) long inputs_threads;
*/
import "C"

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"unsafe"

	"thalweg.dev/go/thalweg/guest"
	"thalweg.dev/go/thalweg/tests/inputs/guest-go/inputs"
	"thalweg.dev/go/thalweg/wire"
)

var running = (*int64)(unsafe.Pointer(&C.inputs_threads))

func init() {
	inputs.Serve(func() (inputs.Service, error) { return service{}, nil })
}

func main() {}

type service struct{}

func (service) Close() {}

// run counts a call until the function that it returns is called.
func run() (end func()) {
	atomic.AddInt64(running, 1)
	return func() { atomic.AddInt64(running, -1) }
}

func (service) Sum(_ context.Context, numbers iter.Seq2[uint64, error]) (uint64, error) {
	defer run()()
	var sum uint64
	for number, err := range numbers {
		if err != nil {
			return 0, err
		}
		sum += number
	}
	for _, err := range numbers {
		var outcome *guest.Error
		if !errors.As(err, &outcome) || outcome.Code != guest.Stale {
			return 0, errors.New("the stream was read twice")
		}
	}
	return sum, nil
}

func (service) Join(ctx context.Context, names iter.Seq2[string, error], between func(context.Context) (string, error)) (string, error) {
	defer run()()
	given, cancel := context.WithCancel(ctx)
	defer cancel()
	word, err := between(given)
	if err != nil {
		return "", err
	}
	var all []string
	for name, err := range names {
		if err != nil {
			return "", err
		}
		all = append(all, name)
	}
	return strings.Join(all, word), nil
}

func (service) Ignore(context.Context, iter.Seq2[uint64, error]) error {
	return nil
}

func (service) Ask(ctx context.Context, key uint64) (string, error) {
	defer run()()
	if key == 100 { // stops to wait before the host answers
		given, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("the guest does not wait"))
		ctx = given
	}
	return inputs.LookUp(ctx, key)
}

func (service) Tell(ctx context.Context, words []string) (uint64, error) {
	defer run()()
	if _, err := inputs.Tell(context.Background(), words, nil); err == nil {
		return 0, errors.New("the host was called outside of a call")
	}
	return inputs.Tell(ctx, words, wire.Some(uint32(1000)))
}

func (service) AskNow(ctx context.Context, key uint64) (uint32, error) {
	_, err := inputs.LookUp(ctx, key)
	var outcome *guest.Error
	if !errors.As(err, &outcome) {
		return 0, nil
	}
	return uint32(outcome.Code), nil
}
