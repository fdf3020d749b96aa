// Package guest is the runtime of services in Go: shared libraries that programs open as "thread:PATH".
// The code that `thalweg gen --guest go` writes for a package uses it.
//
// The library takes its events from a port of libthalweg.so. One goroutine per opening waits for them,
// in the poller of the Go runtime, and starts goroutines that serve the calls:
//
//	async func   a goroutine for each call
//	func         those of one client one after another, in order
//
// A library with a Go runtime is never unloaded. A program that opens a closed guest again gets a new
// port and new states.
package guest

/*
#include "core.h"
*/
import "C"

import (
	"sync"
)

// served is what this library serves.
var served struct {
	mu      sync.Mutex
	library *library
}

// library is a package and the function that opens a state of it.
type library struct {
	*description
	open func() (any, error)
}

// Serve makes the library a guest that serves a package. Generated code calls it, once in a library.
// open is called for each client before its first call.
func Serve[S interface{ Close() }](p Package[S], open func() (S, error)) {
	served.mu.Lock()
	defer served.mu.Unlock()
	if served.library != nil {
		panic("thalweg: a library serves one package, and this one serves " + served.library.name + " already")
	}
	served.library = &library{
		description: describe(p),
		open: func() (any, error) {
			return open()
		},
	}
}

// thalwegGuestOpen is called when a program opens the guest, on a thread of the program.
//
//export thalwegGuestOpen
func thalwegGuestOpen(c *C.tw_guest_core, opening C.uint64_t, why *C.tw_error) C.uint32_t {
	served.mu.Lock()
	l := served.library
	served.mu.Unlock()
	if l == nil {
		return refuse(why, &Error{BadArgument, "the guest serves no package: call Serve in an init function of its main package"})
	}
	if err := openPort(core{c}, l, uint64(opening)); err != nil {
		return refuse(why, err)
	}
	return C.TW_OK
}
