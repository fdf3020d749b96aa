// The conformance service in Go: the functions of ../../wit that a guest can have, which service/ has in Rust.
// ../build.sh builds it.
package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"conformance/guest-go/conformance"

	"thalweg.dev/go/thalweg/guest"
)

func init() {
	conformance.Serve(func() (conformance.Service, error) {
		return &service{turns: turns{over: make(chan struct{})}, ticking: make(map[*ticking]struct{})}, nil
	})
}

func main() {}

type service struct {
	counters, running, waiting atomic.Int32
	turns                      turns
	ticking                    map[*ticking]struct{}
}

func (s *service) Close() {}

// turns are ended by LetGo. Each HeldUp waits for the end of the turn in which it began.
type turns struct {
	mu   sync.Mutex
	over chan struct{}
}

func (t *turns) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.over)
	t.over = make(chan struct{})
}

func (s *service) Several(_ context.Context, type_ uint8, match string, list []uint16, bool_ *conformance.Point) (conformance.Tuple4U8StringListU16OptionPoint, error) {
	return conformance.Tuple4U8StringListU16OptionPoint{F0: type_, F1: match, F2: list, F3: bool_}, nil
}

func (s *service) Nothing(context.Context) error {
	return nil
}

func (s *service) Many(_ context.Context, a uint8, b uint16, c uint32, d uint64, e uint8, f string, g uint16, h uint32, i []byte, j uint64, k uint8, n *string, object conformance.Counter, m uint16) (conformance.Tuple2U64String, error) {
	sum := uint64(a) + uint64(b) + uint64(c) + d + uint64(e) + uint64(g) + uint64(h) + j + uint64(k) + uint64(m) + now(object)
	for _, one := range i {
		sum += uint64(one)
	}
	if n != nil {
		f += *n
	}
	return conformance.Tuple2U64String{F0: sum, F1: f}, nil
}

func (s *service) Fail(_ context.Context, how *conformance.Failure) (uint64, error) {
	if how != nil {
		return 0, *how
	}
	return 7, nil
}

func (s *service) FailLater(ctx context.Context, how *conformance.Failure) (uint64, error) {
	return s.Fail(ctx, how)
}

func (s *service) FailBare(_ context.Context, fails bool) error {
	if fails {
		return errors.New("it was asked to")
	}
	return nil
}

func (s *service) Panic(_ context.Context, message string) (uint32, error) {
	panic(message)
}

func (s *service) PanicLater(_ context.Context, message string) (uint32, error) {
	panic(message)
}

// wait waits for a time, for a channel, or until the call has ended.
func (s *service) wait(ctx context.Context, duration time.Duration, over <-chan struct{}) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-time.After(duration):
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *service) Never(ctx context.Context) error {
	return s.wait(ctx, 24*time.Hour, nil)
}

func (s *service) Limited(ctx context.Context) error {
	return s.wait(ctx, time.Minute, nil)
}

func (s *service) HeldUp(ctx context.Context) error {
	return s.wait(ctx, 24*time.Hour, s.turns.next())
}

func (s *service) LetGo(context.Context) error {
	s.turns.end()
	return nil
}

func (s *service) Waiting(context.Context) (uint32, error) {
	return uint32(s.waiting.Load()), nil
}

func (s *service) Sleep(ctx context.Context, milliseconds uint32) (uint32, error) {
	select {
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return milliseconds, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s *service) Doze(context.Context, uint32) (uint32, error) {
	return 0, &guest.Error{Code: guest.WouldPark, Message: "a guest does not wait"}
}

func (s *service) NewCounter(_ context.Context, start uint64) (conformance.Counter, error) {
	return s.newCounter(start), nil
}

func (s *service) CounterSum(_ context.Context, left, right conformance.Counter) (conformance.Counter, error) {
	return s.newCounter(now(left) + now(right)), nil
}

func (s *service) CounterFinish(_ context.Context, object conformance.Counter) (uint64, error) {
	object.Drop()
	return now(object), nil
}

func (s *service) Counters(context.Context) (uint32, error) {
	return uint32(s.counters.Load()), nil
}

func (s *service) NewEven(_ context.Context, value uint32) (conformance.Even, error) {
	if value%2 != 0 {
		return nil, conformance.FailureCode{Value: value}
	}
	return even{value / 2}, nil
}

func (s *service) NewScale(_ context.Context, by uint64) (conformance.Scale, error) {
	return scale{s, by}, nil
}
