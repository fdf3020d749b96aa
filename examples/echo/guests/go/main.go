// The echo service in Go: a shared library that programs open as thread:PATH. README.md has the
// command.
package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"echo/guest-go/echo"
)

const hourMs = 60 * 60 * 1000

func init() {
	echo.Serve(func() (echo.Service, error) { return service{}, nil })
}

func main() {}

type service struct{}

func (service) Version(context.Context) (string, error) {
	return "0.1.0", nil
}

func (service) NewTimer(_ context.Context, name string) (echo.Timer, error) {
	if name == "" {
		return nil, echo.TimerErrorNoName{}
	}
	return timer{name}, nil
}

func (service) Close() {}

type timer struct {
	name string
}

func (t timer) Echo(ctx context.Context, request echo.Request) (echo.Response, error) {
	if request.DelayMs > hourMs {
		return echo.Response{}, echo.TimerErrorTooLong{Value: request.DelayMs}
	}
	select {
	case <-time.After(time.Duration(request.DelayMs) * time.Millisecond):
		return echo.Response{Message: request.Message, Name: t.name}, nil
	case <-ctx.Done():
		return echo.Response{}, ctx.Err()
	}
}

func (t timer) Complex(_ context.Context, request echo.ComplexRequest) (echo.ComplexResponse, error) {
	note, retries := "none", "none"
	if request.Note != nil {
		note = *request.Note
	}
	if request.Retries != nil {
		retries = fmt.Sprint(*request.Retries)
	}
	count := len(request.Messages)
	return echo.ComplexResponse{
		Summary: fmt.Sprintf("%d messages, tags: %s, note: %s, retries: %s",
			count, strings.Join(request.Tags, " "), note, retries),
		ItemCount: uint64(count),
		HasNote:   request.Note != nil,
	}, nil
}

func (t timer) Schedule(ctx context.Context, everyMs, times uint32) (iter.Seq2[echo.Tick, error], error) {
	switch {
	case everyMs == 0:
		return nil, echo.TimerErrorTooShort{}
	case everyMs > hourMs:
		return nil, echo.TimerErrorTooLong{Value: everyMs}
	}
	every := time.Duration(everyMs) * time.Millisecond
	return func(yield func(echo.Tick, error) bool) {
		due := time.Now()
		for number := uint32(1); times == 0 || number <= times; number++ {
			due = due.Add(every)
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done():
				return // the client was closed
			}
			if !yield(echo.Tick{Number: number, LateNs: uint64(time.Since(due))}, nil) {
				return // the reader has left
			}
		}
	}, nil
}

func (timer) Drop() {}
