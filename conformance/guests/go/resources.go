package main

import (
	"context"
	"iter"
	"sync/atomic"

	"conformance/guest-go/conformance"
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
