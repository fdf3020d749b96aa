// Package service is a guest of the tests, which also misbehaves on request.
package service

/*
#include "counters.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"thalweg.dev/go/thalweg/tests/service/guest-go/probe"
)

// Counters that the tests read.
var (
	states  = (*int64)(unsafe.Pointer(&C.probe_states))
	cells   = (*int64)(unsafe.Pointer(&C.probe_cells))
	cancels = (*int64)(unsafe.Pointer(&C.probe_cancels))
	threads = (*int64)(unsafe.Pointer(&C.probe_threads)) // goroutines that serve
)

type service struct {
	sum uint64
}

type cell struct {
	value uint64
}

func init() {
	probe.Serve(func() (probe.Service, error) {
		atomic.AddInt64(states, 1)
		return new(service), nil
	})
}

//export probe_count_goroutines
func probe_count_goroutines() C.long {
	return C.long(runtime.NumGoroutine())
}

func (s *service) Close() {
	atomic.AddInt64(states, -1)
}

func (s *service) NewCell(_ context.Context, value uint64) (probe.Cell, error) {
	atomic.AddInt64(cells, 1)
	return &cell{value}, nil
}

func (s *service) CellOpen(_ context.Context, opened probe.Cell) (uint64, error) {
	c := opened.(*cell)
	c.Drop()
	return c.value, nil
}

func (c *cell) Get(context.Context) (uint64, error) {
	return c.value, nil
}

func (c *cell) Add(_ context.Context, value uint64) (uint64, error) {
	c.value += value
	return c.value, nil
}

func (c *cell) Drop() {
	atomic.AddInt64(cells, -1)
}

func (s *service) Add(_ context.Context, number uint64) (uint64, error) {
	switch number {
	case math.MaxUint64:
		runtime.Goexit()
	case math.MaxUint64 - 1:
		panic("it went wrong")
	}
	s.sum += number
	return s.sum, nil
}

func (s *service) Echo(_ context.Context, text string) (string, error) {
	if len(text) > 100000 {
		return "", fmt.Errorf("cannot echo: %w", probe.TroubleTooLong{Value: uint32(len(text))})
	}
	return text, nil
}

func (s *service) MoveAll(_ context.Context, points []probe.Point, by probe.Point, colors *probe.Colors) ([]probe.Point, error) {
	slices.Reverse(points)
	for i := range points {
		points[i].X += by.X
		points[i].Y += by.Y
		if colors != nil && *colors&probe.ColorsBlue != 0 {
			points[i].Y = 0
		}
	}
	return points, nil
}

func (s *service) Bytes(_ context.Context, bytes []byte) ([]byte, error) {
	return bytes, nil
}

func (s *service) Nothing(context.Context) error {
	return nil
}

func (s *service) Later(ctx context.Context, ms uint32, number uint64) (uint64, error) {
	atomic.AddInt64(threads, 1)
	defer atomic.AddInt64(threads, -1)
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return number, nil
	case <-ctx.Done():
		atomic.AddInt64(cancels, 1)
		return 0, context.Cause(ctx)
	}
}

func (s *service) Numbers(_ context.Context, count uint64) (iter.Seq2[uint64, error], error) {
	atomic.AddInt64(threads, 1)
	return func(yield func(uint64, error) bool) {
		defer atomic.AddInt64(threads, -1)
		for number := range count {
			if !yield(number, nil) {
				return // the reader has left
			}
		}
	}, nil
}

func (s *service) Points(_ context.Context, count, failing uint32) (iter.Seq2[probe.Point, error], error) {
	return func(yield func(probe.Point, error) bool) {
		for number := int32(1); number <= int32(count); number++ {
			if uint32(number) == failing {
				yield(probe.Point{}, probe.TroubleBecause{Value: "it was asked to"})
				return
			}
			point := probe.Point{Name: fmt.Sprint("point ", number), X: number, Y: -number}
			if !yield(point, nil) {
				return
			}
		}
	}, nil
}

func (s *service) Soon(_ context.Context, value uint32) (func() (uint32, error), error) {
	return func() (uint32, error) { return value, nil }, nil
}

var errUnexpected = errors.New("the core has accepted what it must refuse")
