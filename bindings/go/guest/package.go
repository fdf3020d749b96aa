package guest

/*
#include <stdlib.h>
#include "core.h"
*/
import "C"

import (
	"time"
	"unsafe"
)

// Package describes a WIT package for generated code. S is its interface Service.
type Package[S interface{ Close() }] struct {
	Name           string // "thalweg:search"
	Version        string // "0.1.0"
	Block          bool   // the policy `overload = "block"`
	MaxQueuedCalls uint32
	MaxQueuedBytes uint64
	Methods        []Method[S]
	Imports        []Import
}

// Import describes a function of the host.
type Import struct {
	Name        string
	Description string // the four types as text, one per line
	Flags       Flags
}

// Method describes a function of a package.
type Method[S any] struct {
	Name        string
	Description string // the four types as text, one per line
	Flags       Flags
	Policy      Policy
	// Serve reads the arguments of a call, calls the method of the service, and ends the call.
	Serve func(service S, call *Call)
}

// Flags are properties of a method: TW_METHOD_* in thalweg.h.
type Flags uint32

// The flags of a method.
const (
	Async      Flags = C.TW_METHOD_ASYNC
	Idempotent Flags = C.TW_METHOD_IDEMPOTENT
	CBOR       Flags = C.TW_METHOD_CBOR
	Brief      Flags = C.TW_METHOD_BRIEF
)

// Overflow is what a full stream does.
type Overflow uint32

// The overflow policies.
const (
	OverflowBlock      Overflow = C.TW_OVERFLOW_BLOCK
	OverflowLatest     Overflow = C.TW_OVERFLOW_LATEST
	OverflowDropNewest Overflow = C.TW_OVERFLOW_DROP_NEWEST
	OverflowDropOldest Overflow = C.TW_OVERFLOW_DROP_OLDEST
	OverflowFail       Overflow = C.TW_OVERFLOW_FAIL
)

// Policy is the options of a method. The zero value is the defaults.
type Policy struct {
	NoticeInterval time.Duration
	Timeout        time.Duration
	Linger         time.Duration
	Overflow       Overflow
	Capacity       uint32
	MaxRecordSize  uint32
}

// description is a package without the type of its service.
type description struct {
	name, version  string
	block          bool
	maxQueuedCalls uint32
	maxQueuedBytes uint64
	methods        []method
	imports        []Import
}

type method struct {
	name, description string
	flags             Flags
	policy            Policy
	serve             func(service any, call *Call)
}

func describe[S interface{ Close() }](p Package[S]) *description {
	d := &description{
		name:           p.Name,
		version:        p.Version,
		block:          p.Block,
		maxQueuedCalls: p.MaxQueuedCalls,
		maxQueuedBytes: p.MaxQueuedBytes,
		imports:        p.Imports,
	}
	for _, m := range p.Methods {
		serve := m.Serve
		d.methods = append(d.methods, method{
			name:        m.Name,
			description: m.Description,
			flags:       m.Flags,
			policy:      m.Policy,
			serve:       func(service any, call *Call) { serve(service.(S), call) },
		})
	}
	return d
}

// arena is memory of C that is freed together.
type arena []unsafe.Pointer

func (a *arena) text(text string) *C.char {
	memory := C.CString(text)
	*a = append(*a, unsafe.Pointer(memory))
	return memory
}

func (a *arena) zeroed(count int, size uintptr) unsafe.Pointer {
	memory := C.calloc(C.size_t(max(count, 1)), C.size_t(size))
	*a = append(*a, memory)
	return memory
}

func (a *arena) method(name, description string, flags Flags) C.tw_method {
	return C.tw_method{
		name:             a.text(name),
		flags:            C.uint32_t(flags),
		description:      (*C.uint8_t)(unsafe.Pointer(a.text(description))),
		description_size: C.uint32_t(len(description)),
	}
}

func (a *arena) free() {
	for _, memory := range *a {
		C.free(memory)
	}
}

// servePort declares the package, and returns the port from which its events are taken.
func (d *description) servePort(c core, opening uint64) (uint64, *Error) {
	var memory arena
	defer memory.free()
	count := len(d.methods)
	methods := unsafe.Slice((*C.tw_method)(memory.zeroed(count, unsafe.Sizeof(C.tw_method{}))), count)
	policies := unsafe.Slice((*C.tw_guest_policy)(memory.zeroed(count, unsafe.Sizeof(C.tw_guest_policy{}))), count)
	for i, m := range d.methods {
		methods[i] = memory.method(m.name, m.description, m.flags)
		policies[i].notice_interval_ns = C.uint64_t(m.policy.NoticeInterval)
		policies[i].timeout_ns = C.uint64_t(m.policy.Timeout)
		policies[i].linger_ns = C.uint64_t(m.policy.Linger)
		policies[i].overflow = C.uint32_t(m.policy.Overflow)
		policies[i].capacity = C.uint32_t(m.policy.Capacity)
		policies[i].max_record_size = C.uint32_t(m.policy.MaxRecordSize)
	}
	imports := unsafe.Slice((*C.tw_method)(memory.zeroed(len(d.imports), unsafe.Sizeof(C.tw_method{}))), len(d.imports))
	for i, one := range d.imports {
		imports[i] = memory.method(one.Name, one.Description, one.Flags)
	}
	p := (*C.tw_guest_package)(memory.zeroed(1, unsafe.Sizeof(C.tw_guest_package{})))
	p.size = C.uint32_t(unsafe.Sizeof(*p))
	if d.block {
		p.flags = C.TW_GUEST_BLOCK
	}
	p._package = memory.text(d.name)
	p.version = memory.text(d.version)
	p.methods = unsafe.SliceData(methods)
	p.policies = unsafe.SliceData(policies)
	p.method_count = C.uint32_t(count)
	p.imports = unsafe.SliceData(imports)
	p.import_count = C.uint32_t(len(imports))
	p.max_queued_calls = C.uint32_t(d.maxQueuedCalls)
	p.max_queued_bytes = C.uint64_t(d.maxQueuedBytes)
	var port C.tw_handle
	var why C.tw_error
	code := C.thalweg_serve_port(c.c, C.uint64_t(opening), p, &port, &why)
	return uint64(port), errorOf(code, &why)
}
