package main

import (
	"context"
	"iter"
	"sync/atomic"

	"conformance/guest-go/conformance"

	"thalweg.dev/go/thalweg/wire"
)

type counter struct {
	service *service
	value   atomic.Uint64
}

func (s *service) newCounter(start uint64) *counter {
	s.counters.Add(1)
	c := &counter{service: s}
	c.value.Store(start)
	return c
}

func now(object conformance.Counter) uint64 {
	return object.(*counter).value.Load()
}

func (c *counter) Add(_ context.Context, amount uint64) (uint64, error) {
	return c.value.Add(amount), nil
}

func (c *counter) Value(context.Context) (uint64, error) {
	return c.value.Load(), nil
}

func (c *counter) ValueLater(context.Context) (uint64, error) {
	return c.value.Load(), nil
}

func (c *counter) Steps(_ context.Context, count uint32) (iter.Seq2[uint64, error], error) {
	return records(uint64(count), func(uint64) uint64 { return c.value.Add(1) }), nil
}

func (c *counter) Drop() {
	c.service.counters.Add(-1)
}

type even struct {
	half uint32
}

func (e even) Half(context.Context) (uint32, error) {
	return e.half, nil
}

func (even) Drop() {}

type scale struct {
	service *service
	by      uint64
}

func (s scale) Apply(_ context.Context, object conformance.Counter) (conformance.Counter, error) {
	return s.service.newCounter(now(object) * s.by), nil
}

func (scale) Drop() {}

// Resources inside of other values.

func (s *service) GiveCounters(_ context.Context, start uint64, count uint32) ([]conformance.Counter, error) {
	counters := make([]conformance.Counter, count)
	for i := range counters {
		counters[i] = s.newCounter(start + uint64(i))
	}
	return counters, nil
}

func (s *service) Total(_ context.Context, counters []conformance.Counter) (uint64, error) {
	var sum uint64
	for _, object := range counters {
		sum += now(object)
		object.Drop()
	}
	return sum, nil
}

func (s *service) FirstOf(_ context.Context, object conformance.Counter) (*uint64, error) {
	if object == nil {
		return nil, nil
	}
	object.Drop()
	return wire.Some(now(object)), nil
}

func (s *service) Swap(_ context.Context, value conformance.Pair) (conformance.Pair, error) {
	if value.Right == nil {
		return conformance.Pair{}, conformance.MaybeCounterOne{Value: value.Left}
	}
	value.Left, value.Right = value.Right, value.Left
	return value, nil
}

func (s *service) Refuse(_ context.Context, value conformance.MaybeCounter) error {
	return value
}
