package main

import (
	"context"
	"errors"
	"iter"
	"strings"

	"conformance/guest-go/conformance"

	"thalweg.dev/go/thalweg/guest"
	"thalweg.dev/go/thalweg/wire"
)

// codeOf returns the number of an outcome. An error of a function is the outcome `error`.
func codeOf(err error) uint32 {
	var outcome *guest.Error
	if errors.As(err, &outcome) {
		return uint32(outcome.Code)
	}
	return uint32(guest.ErrorPayload)
}

// asCode returns an error that is the number of an outcome.
func asCode(err error) error {
	if err == nil {
		return nil
	}
	return guest.Failure[uint32]{Value: codeOf(err)}
}

// Functions with streams and futures as parameters.

func (s *service) SumOf(_ context.Context, numbers iter.Seq2[uint64, error]) (conformance.Tuple2U64U64, error) {
	var sum conformance.Tuple2U64U64
	for number, err := range numbers {
		if err != nil {
			return sum, asCode(err)
		}
		sum.F0++
		sum.F1 += number
	}
	return sum, nil
}

func (s *service) NamesOf(_ context.Context, items iter.Seq2[conformance.Item, error]) (string, error) {
	var names strings.Builder
	for item, err := range items {
		if err != nil {
			return "", err
		}
		names.WriteString(item.Name)
	}
	return names.String(), nil
}

func (s *service) FirstNumbers(_ context.Context, count uint32, numbers iter.Seq2[uint64, error]) ([]uint64, error) {
	var first []uint64
	if count == 0 {
		return first, nil
	}
	for number, err := range numbers {
		if err != nil {
			return nil, err
		}
		first = append(first, number)
		if len(first) == int(count) {
			break
		}
	}
	return first, nil
}

func (s *service) WordsFirst(_ context.Context, numbers iter.Seq2[uint64, error], words iter.Seq2[string, error]) (conformance.Tuple2StringU64, error) {
	var both conformance.Tuple2StringU64
	for word, err := range words {
		if err != nil {
			return both, err
		}
		both.F0 += word
	}
	for number, err := range numbers {
		if err != nil {
			return both, err
		}
		both.F1 += number
	}
	return both, nil
}

func (s *service) AddAll(_ context.Context, object conformance.Counter, amounts iter.Seq2[uint64, error]) (uint64, error) {
	for amount, err := range amounts {
		if err != nil {
			return 0, err
		}
		object.(*counter).value.Add(amount)
	}
	return now(object), nil
}

func (s *service) Hear(ctx context.Context, text func(context.Context) (string, error)) (string, error) {
	heard, err := text(ctx)
	return heard, asCode(err)
}

func (s *service) BeatsOf(_ context.Context, beats iter.Seq2[struct{}, error]) (uint64, error) {
	var count uint64
	for _, err := range beats {
		if err != nil {
			return 0, err
		}
		count++
	}
	return count, nil
}

func (s *service) Comes(ctx context.Context, signal func(context.Context) (struct{}, error)) error {
	_, err := signal(ctx)
	return asCode(err)
}

// Functions that call the host.

func (s *service) Ask(ctx context.Context, key uint64) (string, error) {
	text, err := conformance.LookUp(ctx, key)
	return text, asCode(err)
}

func (s *service) AskLater(ctx context.Context, key uint64) (string, error) {
	return s.Ask(ctx, key)
}

func (s *service) Tell(ctx context.Context, words []string, at *uint32) (uint64, error) {
	if err := conformance.Nod(ctx); err != nil {
		return 0, asCode(err)
	}
	told, err := conformance.Tell(ctx, words, at)
	return told, asCode(err)
}

func (s *service) AskAll(ctx context.Context, keys iter.Seq2[uint64, error]) ([]wire.Result[string, uint32], error) {
	var answers []wire.Result[string, uint32]
	for key, err := range keys {
		if err != nil {
			return nil, err
		}
		text, err := conformance.LookUp(ctx, key)
		if err != nil {
			answers = append(answers, wire.Result[string, uint32]{IsErr: true, Err: codeOf(err)})
		} else {
			answers = append(answers, wire.Result[string, uint32]{Ok: text})
		}
	}
	return answers, nil
}
