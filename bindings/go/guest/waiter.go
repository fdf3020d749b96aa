package guest

// waiter is a goroutine that waits for an event of the port. No thread waits in C.
type waiter struct {
	port  *port
	token uint64 // in the event
	ready chan struct{}
}

// newWaiter returns a waiter, which must be ended.
func (p *port) newWaiter() *waiter {
	w := &waiter{port: p, ready: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newestToken++
	w.token = p.newestToken
	p.waiters[w.token] = w
	return w
}

func (w *waiter) end() {
	w.port.mu.Lock()
	defer w.port.mu.Unlock()
	delete(w.port.waiters, w.token)
}

func (w *waiter) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// ready wakes the waiter with this token.
func (p *port) ready(token uint64) {
	p.mu.Lock()
	w := p.waiters[token]
	p.mu.Unlock()
	if w != nil {
		w.wake()
	}
}

// wakeAll wakes all waiters, because the port has ended.
func (p *port) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiters {
		w.wake()
	}
}
