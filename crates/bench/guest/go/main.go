// The lab's service as a guest in Go: the functions of ../lab_guest.c.
package main

import (
	"context"
	"iter"

	"lab/guest-go/lab"
)

func init() {
	lab.Serve(func() (lab.Service, error) { return new(service), nil })
}

func main() {}

// service has the functions that are measured. A call of another one is a call of a nil interface, and ends as
// guest_panicked.
type service struct {
	lab.Service
	sum uint64
}

func (*service) Close() {}

func (*service) Nop(context.Context) error {
	return nil
}

func (*service) NopAsync(context.Context) error {
	return nil
}

func (s *service) Tally(_ context.Context, amount uint64) (uint64, error) {
	s.sum += amount
	return s.sum, nil
}

func (*service) Echo(_ context.Context, data []byte) ([]byte, error) {
	return data, nil
}

// The records of a stream are batched by the runtime of guests, whatever the batch that is asked for.

func (*service) Events(_ context.Context, count uint64, _ uint32) (iter.Seq2[lab.Event, error], error) {
	contract := lab.Contract{
		Symbol: 0x4d524554, Expiration: 20261218, Security: 2, Strike: 150, IsCall: 1, Exchange: 5, ID: 77,
	}
	return func(yield func(lab.Event, error) bool) {
		for number := range count {
			small := int32(number & 0xffff)
			quote := lab.Quote{
				Contract: contract, Number: number, Bid: float64(small), Ask: float64(small) + 0.25,
				MsOfDay: small, Date: 20261124,
				BidSize: 10, BidExchange: 3, BidCondition: 50,
				AskSize: small ^ 7, AskExchange: 4, AskCondition: 50,
			}
			if !yield(lab.Event{Kind: lab.EventKindQuote, Quote: quote}, nil) {
				return
			}
		}
	}, nil
}

func (*service) Ticks(_ context.Context, count uint64, _ uint32) (iter.Seq2[lab.Tick, error], error) {
	return func(yield func(lab.Tick, error) bool) {
		for number := range count {
			// As tick in crates/bench/service/src/ticks.rs.
			bid := 10000 + number%97
			tick := lab.Tick{
				Number: number, Bid: bid, Ask: bid + 1, BidSize: number % 7, AskSize: number % 11, Last: bid,
				Volume: 3 * number,
			}
			if !yield(tick, nil) {
				return
			}
		}
	}, nil
}
