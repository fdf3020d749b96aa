package guest

/*
#include "core.h"
*/
import "C"

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// port takes the events of one opening of the library. Only its goroutine uses states and events.
type port struct {
	core    core
	library *library
	handle  uint64
	answers *answers
	wake    *os.File // becomes readable when there are events
	events  takenEvents
	next    int // index of the first taken event that was not served
	states  map[uint64]*state
	active  atomic.Int64 // goroutines that use a service
	queues  []*state     // those whose queues need a goroutine, after the events that were taken

	mu          sync.Mutex
	calls       map[uint64]*Call // those that have not ended
	waiters     map[uint64]*waiter
	newestToken uint64
}

func openPort(c core, l *library, opening uint64) *Error {
	handle, err := l.servePort(c, opening)
	if err != nil {
		return err
	}
	wake, err := wakeFile(c, handle)
	if err != nil {
		return err
	}
	p := &port{
		core:    c,
		library: l,
		handle:  handle,
		answers: newAnswers(c),
		wake:    wake,
		events:  newTakenEvents(),
		states:  make(map[uint64]*state),
		calls:   make(map[uint64]*Call),
		waiters: make(map[uint64]*waiter),
	}
	go p.run()
	return nil
}

// wakeFile returns a duplicate of the port's eventfd, which does not block, so that the Go runtime waits
// for it without a thread.
func wakeFile(c core, handle uint64) (*os.File, *Error) {
	var fd C.int
	var why C.tw_error
	if code := C.thalweg_port_fd(c.c, C.tw_handle(handle), &fd, &why); code != C.TW_OK {
		return nil, errorOf(code, &why)
	}
	duplicate, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, &Error{Overloaded, "the guest has no file descriptor: " + errno.Error()}
	}
	return os.NewFile(duplicate, "thalweg"), nil
}

// run serves events until the guest is closed.
func (p *port) run() {
	isDone := false
	defer func() {
		if !isDone {
			go p.run() // a brief method has ended its goroutine by runtime.Goexit
			return
		}
		p.wakeAll()
		p.events.free()
		p.wake.Close()
	}()
	wake, err := p.wake.SyscallConn()
	for isOpen := true; err == nil && isOpen; {
		// Waits until the descriptor is readable whenever the function returns false.
		err = wake.Read(func(uintptr) bool {
			isOpen = p.serveAvailable()
			return !isOpen || p.mayWaitInC()
		})
		if err == nil && isOpen {
			isOpen = p.events.take(p.core, p.handle, forever)
		}
	}
	if err != nil {
		panic("thalweg: cannot wait for events: " + err.Error())
	}
	isDone = true
}

// mayWaitInC reports whether the goroutine of the port may wait in C, which is faster than Go's poller. It keeps
// its processor for some time, in which no other goroutine of the guest may need it. Those that were just started
// run first.
func (p *port) mayWaitInC() bool {
	if p.active.Load() > 0 {
		runtime.Gosched()
	}
	return p.active.Load() == 0
}

// serveAvailable serves all events that are available. Returns false when the port has ended.
func (p *port) serveAvailable() bool {
	for {
		for events := p.events.taken(); p.next < len(events); {
			event := &events[p.next]
			p.next++
			p.serve(event)
		}
		p.next = 0
		p.answers.send()
		p.startQueues()
		isOpen := p.events.take(p.core, p.handle, 0)
		if len(p.events.taken()) == 0 {
			return isOpen
		}
	}
}

// startQueues starts the goroutines that serve calls. A goroutine that is started earlier competes with this one,
// and answers one call at a time.
func (p *port) startQueues() {
	for i, s := range p.queues {
		go s.serveQueue()
		p.queues[i] = nil
	}
	p.queues = p.queues[:0]
}

func (p *port) serve(event *C.tw_guest_event) {
	number := uint64(event.state)
	switch event.kind {
	case C.TW_GUEST_OPEN:
		p.states[number] = newState(p)
	case C.TW_GUEST_CALL:
		if s := p.states[number]; s != nil {
			p.call(s, &event.call)
		}
	case C.TW_GUEST_CANCEL:
		p.mu.Lock()
		call := p.calls[uint64(event.call.call)]
		p.mu.Unlock()
		if call != nil {
			call.cancelled()
		}
	case C.TW_GUEST_DROP:
		if s := p.states[number]; s != nil {
			s.drop(uint64(event.object))
		}
	case C.TW_GUEST_CLOSE:
		if s := p.states[number]; s != nil {
			delete(p.states, number)
			s.close()
		}
	case C.TW_GUEST_READY:
		p.ready(uint64(event.object))
	}
}

// call begins a call of a state.
func (p *port) call(s *state, event *C.tw_guest_call) {
	call := &Call{
		state:    s,
		handle:   uint64(event.call),
		method:   &p.library.methods[event.method],
		deadline: uint64(event.deadline_ns),
		args:     argsOf(event),
	}
	s.begin(call)
}

// began remembers a call, which may be cancelled.
func (p *port) began(call *Call) {
	p.mu.Lock()
	p.calls[call.handle] = call
	p.mu.Unlock()
}

// ended forgets a call.
func (p *port) ended(call *Call) {
	p.mu.Lock()
	delete(p.calls, call.handle)
	p.mu.Unlock()
}
