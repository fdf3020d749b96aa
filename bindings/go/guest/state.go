package guest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// state is what the guest has for one client: a service and its resources.
//
//  1. The calls of a `func` and the drops of resources wait in queue, and one goroutine serves them in
//     order. It exists while the queue is not empty. If it does not exist, the goroutine of the port serves
//     a `brief` call itself. The goroutine of the port is the only one that adds to the queue and closes the
//     state.
//  2. active counts the goroutines that use the service. When the client is closed, the last one of
//     them closes the service.
type state struct {
	port *port
	// ctx ends when the client is closed. The contexts of calls are derived from it.
	ctx  context.Context
	stop context.CancelCauseFunc

	opening sync.Mutex
	service any // nil until isOpen
	isOpen  atomic.Bool

	mu        sync.Mutex
	queue     []task
	next      int // index of the first task that was not taken
	isServing bool
	active    int
	isClosed  bool
	objects   map[uint64]object
	newest    uint64 // the number of the newest object
}

// task is a call, or an object that is dropped.
type task struct {
	call   *Call
	object object
}

func newState(p *port) *state {
	ctx, stop := context.WithCancelCause(context.Background())
	return &state{port: p, ctx: ctx, stop: stop, objects: make(map[uint64]object)}
}

// begin begins a call.
func (s *state) begin(call *Call) {
	if call.method.flags&Async == 0 {
		if call.method.flags&Brief != 0 && s.isIdle() {
			call.isInline, call.urgency = true, untilSend
			call.run()
			return
		}
		s.port.began(call)
		if !s.push(task{call: call}) {
			call.fail(Overloaded, fmt.Sprintf("%d calls of the client are waiting for the guest", s.port.library.maxQueuedCalls))
			call.end()
		}
		return
	}
	s.port.began(call)
	s.enter()
	go func() {
		defer s.leave()
		call.run()
	}()
}

// push adds a task to the queue. Returns false if there are too many calls.
func (s *state) push(t task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.call != nil && len(s.queue)-s.next >= int(s.port.library.maxQueuedCalls) {
		return false
	}
	if s.next > len(s.queue)/2 && len(s.queue) == cap(s.queue) {
		left := copy(s.queue, s.queue[s.next:])
		clear(s.queue[left:])
		s.queue, s.next = s.queue[:left], 0
	}
	s.queue = append(s.queue, t)
	if !s.isServing {
		s.isServing = true
		s.active++
		s.port.active.Add(1)
		s.port.queues = append(s.port.queues, s)
	}
	return true
}

// pop takes the next task. If there is none, the goroutine that serves the queue ends.
func (s *state) pop() (t task, hasMore, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.queue) {
		s.queue, s.next = s.queue[:0], 0
		s.isServing = false
		return task{}, false, false
	}
	t = s.queue[s.next]
	s.queue[s.next] = task{}
	s.next++
	return t, s.next < len(s.queue), true
}

func (s *state) serveQueue() {
	isDone := false
	defer func() {
		if !isDone {
			go s.serveQueue() // a method has ended its goroutine by runtime.Goexit
			return
		}
		s.leave()
	}()
	var took time.Duration // by the task before
	for began := time.Now(); ; {
		t, hasMore, ok := s.pop()
		switch {
		case !ok:
			isDone = true
			return
		case t.call != nil:
			if hasMore && took < longestHeld {
				t.call.urgency = soon
			}
			t.call.run()
		default:
			reportPanic("Drop", t.object.Drop)
		}
		ended := time.Now()
		took, began = ended.Sub(began), ended
	}
}

// isIdle reports whether the service is open and has no other calls of a `func`. Only for the goroutine of the
// port: it adds such calls, and closes states.
func (s *state) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isServing && s.isOpen.Load()
}

// enter counts a goroutine that uses the service.
func (s *state) enter() {
	s.mu.Lock()
	s.active++
	s.mu.Unlock()
	s.port.active.Add(1)
}

// leave ends what enter has begun.
func (s *state) leave() {
	s.port.active.Add(-1)
	s.mu.Lock()
	s.active--
	isLast := s.isClosed && s.active == 0
	s.mu.Unlock()
	if isLast {
		s.end()
	}
}

// close closes the state after its calls have ended.
func (s *state) close() {
	s.stop(&Error{Cancelled, "the client was closed"})
	s.mu.Lock()
	s.isClosed = true
	isIdle := s.active == 0
	s.mu.Unlock()
	if isIdle {
		go s.end()
	}
}

func (s *state) end() {
	if s.service != nil {
		reportPanic("Close", s.service.(interface{ Close() }).Close)
	}
}

// open returns the service, which the first call opens.
func (s *state) open() (any, error) {
	if s.isOpen.Load() {
		return s.service, nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.service == nil {
		service, err := s.port.library.open()
		if err != nil {
			return nil, err
		}
		s.service = service
		s.isOpen.Store(true)
	}
	return s.service, nil
}

// drop drops an object that no program has any more, after the calls before it.
func (s *state) drop(number uint64) {
	if object := s.takeObject(number); object != nil {
		s.push(task{object: object})
	}
}

// reportPanic calls a function that no caller waits for.
func reportPanic(name string, run func()) {
	defer func() {
		if value := recover(); value != nil {
			fmt.Fprintf(os.Stderr, "thalweg: panic in %s: %s\n", name, panicText(value))
		}
	}()
	run()
}
