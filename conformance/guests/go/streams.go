package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"conformance/guest-go/conformance"

	"thalweg.dev/go/thalweg/guest"
	"thalweg.dev/go/thalweg/wire"
)

// records returns a stream of the records for the numbers below count.
func records[T any](count uint64, record func(number uint64) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for number := range count {
			if !yield(record(number), nil) {
				return
			}
		}
	}
}

// numbers returns a stream of the numbers below count, which ends with err.
func numbers(count uint64, err error) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		for number := range count {
			if !yield(number, nil) {
				return
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
}

func (s *service) Count(_ context.Context, first, count uint64) (iter.Seq2[uint64, error], error) {
	count = min(count, math.MaxUint64-first)
	return records(count, func(number uint64) uint64 { return first + number }), nil
}

func (s *service) Items(_ context.Context, count uint64) (iter.Seq2[conformance.Item, error], error) {
	tags := []string{"tag 0", "tag 1"}
	return records(count, func(number uint64) conformance.Item {
		item := conformance.Item{Number: number, Name: fmt.Sprint("item ", number), Tags: tags[:number%3]}
		if number%2 == 0 {
			item.Blob = wire.Some(bytes.Repeat([]byte{byte(number)}, int(number%7)))
		}
		return item
	}), nil
}

func (s *service) Latest(_ context.Context, count uint64) (iter.Seq2[uint64, error], error) {
	return numbers(count, nil), nil
}

func (s *service) Breaks(_ context.Context, after uint64) (iter.Seq2[uint64, error], error) {
	return numbers(after, fmt.Errorf("broken after %d", after)), nil
}

func (s *service) Endless(context.Context) (iter.Seq2[uint64, error], error) {
	s.running.Add(1)
	return func(yield func(uint64, error) bool) {
		defer s.running.Add(-1)
		for number := uint64(0); yield(number, nil); number++ {
		}
	}, nil
}

func (s *service) Running(context.Context) (uint32, error) {
	return uint32(s.running.Load()), nil
}

func (s *service) Samples(_ context.Context, count uint32) (iter.Seq2[conformance.Sample, error], error) {
	colors := []conformance.Color{conformance.ColorRed, conformance.ColorGreen, conformance.ColorBool}
	return records(uint64(count), func(given uint64) conformance.Sample {
		number, i := uint32(given), int32(given)
		isEven := number%2 == 0
		sample := conformance.Sample{
			Number: number,
			At:     conformance.Point{X: i, Y: -i},
			All: conformance.Scalars{
				ABool: isEven, AU64: given << 32, AU8: uint8(number), AU16: uint16(number), AS8: int8(i), AU32: number,
				AS16: int16(-i), AF64: float64(number) / 2, AChar: 'a' + i%26, AS64: -int64(i), AF32: float32(number) / 4, AS32: -i,
			},
			Color: colors[number%3],
			Days:  conformance.DaysWorkday,
			Pair:  conformance.Tuple2U8U64{F0: uint8(number), F1: given},
		}
		if isEven {
			sample.Days = conformance.DaysMonday
			sample.Weight = wire.Some(float64(number))
			sample.Name = wire.Some(fmt.Sprint("sample ", number))
		}
		for corner := range i % 4 {
			sample.Corners = append(sample.Corners, conformance.Point{X: i, Y: corner})
		}
		return sample
	}), nil
}

func (s *service) Shapes(_ context.Context, count uint32) (iter.Seq2[conformance.Shape, error], error) {
	return records(uint64(count), func(number uint64) conformance.Shape {
		return conformance.ShapeCircle{Value: float64(number)}
	}), nil
}

func (s *service) Later(_ context.Context, milliseconds uint32, text string) (func() (string, error), error) {
	return func() (string, error) {
		time.Sleep(time.Duration(milliseconds) * time.Millisecond)
		return text, nil
	}, nil
}

func (s *service) Signal(_ context.Context, milliseconds uint32) (func() (struct{}, error), error) {
	return func() (struct{}, error) {
		time.Sleep(time.Duration(milliseconds) * time.Millisecond)
		return struct{}{}, nil
	}, nil
}

func (s *service) NeverComes(_ context.Context, message *string) (func() (conformance.Point, error), error) {
	return func() (conformance.Point, error) {
		if message != nil {
			return conformance.Point{}, errors.New(*message)
		}
		return conformance.Point{}, errors.New("the service dropped the future without a value")
	}, nil
}

func (s *service) FailsToCome(_ context.Context, code uint32) (func() (conformance.Point, error), error) {
	return func() (conformance.Point, error) {
		return conformance.Point{}, conformance.FailureCode{Value: code}
	}, nil
}

// ticking is a stream of Ticks. Tick sends it how many numbers are next.
type ticking struct {
	counts chan uint32
	sent   chan bool // whether the stream was open
}

func (s *service) Ticks(ctx context.Context) (iter.Seq2[uint64, error], error) {
	t := &ticking{make(chan uint32), make(chan bool)}
	s.ticking[t] = struct{}{}
	return func(yield func(uint64, error) bool) {
		next := uint64(0)
		for {
			select {
			case count, ok := <-t.counts:
				if !ok {
					return
				}
				isOpen := true
				for range count {
					isOpen = isOpen && yield(next, nil)
					next++
				}
				t.sent <- isOpen
				if !isOpen {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}, nil
}

func (s *service) Tick(ctx context.Context, count uint32) (uint32, error) {
	for t := range s.ticking {
		t.counts <- count
		if !<-t.sent {
			delete(s.ticking, t)
		}
	}
	return uint32(len(s.ticking)), nil
}

func (s *service) EndTicks(context.Context) error {
	for t := range s.ticking {
		close(t.counts)
		delete(s.ticking, t)
	}
	return nil
}

func (s *service) DropsNewest(_ context.Context, count uint64) (iter.Seq2[uint64, error], error) {
	return numbers(count, nil), nil
}

func (s *service) DropsOldest(_ context.Context, count uint64) (iter.Seq2[uint64, error], error) {
	return numbers(count, nil), nil
}

func (s *service) Refuses(_ context.Context, count uint64) (iter.Seq2[uint64, error], error) {
	return numbers(count, nil), nil
}

func (s *service) Beats(_ context.Context, count uint64) (iter.Seq2[struct{}, error], error) {
	return records(count, func(uint64) struct{} { return struct{}{} }), nil
}

func (s *service) Bits(_ context.Context, count uint32) (iter.Seq2[bool, error], error) {
	return records(uint64(count), func(number uint64) bool { return number%2 == 1 }), nil
}

func (s *service) Letters(_ context.Context, count uint32) (iter.Seq2[rune, error], error) {
	letters := []rune("aß☃𐍈")
	return records(uint64(count), func(number uint64) rune { return letters[number%4] }), nil
}

func (s *service) Maybes(_ context.Context, count uint32) (iter.Seq2[*string, error], error) {
	return records(uint64(count), func(number uint64) *string {
		if number%2 != 0 {
			return nil
		}
		return wire.Some(fmt.Sprint(number))
	}), nil
}

func (s *service) Couples(_ context.Context, count uint32) (iter.Seq2[conformance.Tuple2U8String, error], error) {
	return records(uint64(count), func(number uint64) conformance.Tuple2U8String {
		return conformance.Tuple2U8String{F0: uint8(number), F1: fmt.Sprint(number)}
	}), nil
}

func (s *service) Rows(_ context.Context, count uint32) (iter.Seq2[[]uint16, error], error) {
	row := []uint16{0, 1, 2}
	return records(uint64(count), func(number uint64) []uint16 { return row[:number%4] }), nil
}

func (s *service) Outcomes(_ context.Context, count uint32) (iter.Seq2[wire.Result[uint32, string], error], error) {
	return records(uint64(count), func(number uint64) wire.Result[uint32, string] {
		if number%2 == 0 {
			return wire.Result[uint32, string]{Ok: uint32(number)}
		}
		return wire.Result[uint32, string]{IsErr: true, Err: fmt.Sprint("no ", number)}
	}), nil
}

func (s *service) Stops(_ context.Context, count uint64, how string) (iter.Seq2[uint64, error], error) {
	switch how {
	case "finish":
		return numbers(count, nil), nil
	case "fail":
		return numbers(count, conformance.FailureCode{Value: uint32(count)}), nil
	default:
		// A guest's stream has one writer.
		return numbers(count, &guest.Error{Code: guest.GuestLost, Message: "a writer was dropped without finish()"}), nil
	}
}

func (s *service) RowsOf(_ context.Context, count, size uint32) (iter.Seq2[string, error], error) {
	return func(yield func(string, error) bool) {
		for range count {
			if !yield("x", nil) {
				return
			}
		}
		_ = yield(strings.Repeat("x", int(size)), nil) && yield("x", nil)
	}, nil
}
