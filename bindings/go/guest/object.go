package guest

import "thalweg.dev/go/thalweg/wire"

// object is a resource.
type object interface{ Drop() }

func (s *state) addObject(o object) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest++
	s.objects[s.newest] = o
	return s.newest
}

func (s *state) getObject(number uint64) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[number]
}

func (s *state) takeObject(number uint64) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[number]
	delete(s.objects, number)
	return o
}

// Borrow returns the resource that a handle in the arguments refers to. If it cannot be used, the call
// ends: see Call.IsRefused.
func Borrow[T object](call *Call, handle uint64, kind uint32) T {
	return resourceOf[T](call, handle, kind, false)
}

// Take returns a resource that belongs to the guest from now on.
func Take[T object](call *Call, handle uint64, kind uint32) T {
	o := resourceOf[T](call, handle, kind, true)
	if !call.isAnswered {
		call.taken = append(call.taken, o)
	}
	return o
}

func resourceOf[T object](call *Call, handle uint64, kind uint32, isOwn bool) T {
	var none T
	if call.isAnswered {
		return none
	}
	s := call.state
	number, err := s.port.core.object(call.handle, handle, kind, isOwn)
	if err != nil {
		call.fail(err.Code, err.Message)
		return none
	}
	get := s.getObject
	if isOwn {
		get = s.takeObject
	}
	o, ok := get(number).(T)
	if !ok {
		call.fail(Stale, "the resource was dropped")
	}
	return o
}

// IsRefused ends the reading of the arguments. If a resource or stream cannot be used, the call has ended, and
// the result is true.
func (c *Call) IsRefused() bool {
	taken := c.taken
	c.taken = nil
	if c.isAnswered {
		dropAll(taken)
	}
	return c.isAnswered
}

// AnswerResources ends the call with the message of a result that has resources. encode writes the message
// from its beginning, possibly twice.
func (c *Call) AnswerResources(encode func(w *wire.Writer)) {
	w, _ := c.Begin(0, 0)
	encode(w)
	if c.give(w) {
		encode(w)
	}
	c.answer(OK)
}

// give makes handles for the resources that were put into a message. It reports whether there are any, and
// the message must be written again. The program has the resources if the answer is accepted. Otherwise the
// core drops them.
func (c *Call) give(w *wire.Writer) bool {
	put := w.Objects()
	if len(put) == 0 {
		return false
	}
	s := c.state
	objects := make([]object, len(put))
	for i, one := range put {
		objects[i] = one.Value.(object)
	}
	if _, err := w.End(); err != nil {
		dropAll(objects) // the message cannot be written
		return false
	}
	kinds, numbers := make([]uint32, len(put)), make([]uint64, len(put))
	for i, one := range put {
		kinds[i], numbers[i] = one.Type, s.addObject(objects[i])
	}
	handles, count := s.port.core.newObjects(c.handle, kinds, numbers)
	for i := count; i < len(numbers); i++ {
		s.takeObject(numbers[i]) // the call has ended, or too many handles are open
	}
	dropAll(objects[count:])
	w.UseHandles(handles)
	return true
}

// dropAll drops objects that the program does not get.
func dropAll(objects []object) {
	for _, o := range objects {
		reportPanic("Drop", o.Drop)
	}
}

// AnswerObject ends the call with a resource. The program has it until it drops it.
func (c *Call) AnswerObject(kind uint32, o object) {
	if o == nil {
		c.lost("the method returned nil instead of a resource")
		return
	}
	if !c.answering() {
		return
	}
	c.closeUnread()
	number := c.state.addObject(o)
	if c.state.port.core.answerObject(c.handle, kind, number) != OK {
		c.state.takeObject(number)
		reportPanic("Drop", o.Drop) // the call had ended: the program never had it
	}
}
