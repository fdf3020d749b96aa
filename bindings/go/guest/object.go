package guest

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
// ends, and the result is false.
func Borrow[T object](call *Call, handle uint64, kind uint32) (T, bool) {
	return resourceOf[T](call, handle, kind, false)
}

// Take returns a resource that belongs to the guest from now on.
func Take[T object](call *Call, handle uint64, kind uint32) (T, bool) {
	return resourceOf[T](call, handle, kind, true)
}

func resourceOf[T object](call *Call, handle uint64, kind uint32, isOwn bool) (T, bool) {
	var none T
	s := call.state
	number, err := s.port.core.object(call.handle, handle, kind, isOwn)
	if err != nil {
		call.fail(err.Code, err.Message)
		return none, false
	}
	get := s.getObject
	if isOwn {
		get = s.takeObject
	}
	o, ok := get(number).(T)
	if !ok {
		call.fail(Stale, "the resource was dropped")
	}
	return o, ok
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
	number := c.state.addObject(o)
	if c.state.port.core.answerObject(c.handle, kind, number) != OK {
		c.state.takeObject(number)
		reportPanic("Drop", o.Drop) // the call had ended: the program never had it
	}
}
