package guest

/*
#cgo CFLAGS: -I${SRCDIR}/../../c/include
#cgo noescape thalweg_answer
#cgo noescape thalweg_answer_many
#cgo noescape thalweg_answer_stream
#cgo noescape thalweg_fail
#cgo noescape thalweg_call_check
#cgo noescape thalweg_object
#cgo noescape thalweg_new_objects
#cgo noescape thalweg_reader_open
#cgo noescape thalweg_reader_receive
#cgo noescape thalweg_reader_close
#cgo noescape thalweg_import_begin
#cgo noescape thalweg_import_answer
#cgo noescape thalweg_message_release
#cgo noescape thalweg_stream_write
#cgo noescape thalweg_stream_fail
#cgo noescape thalweg_stream_abort
#include <stdlib.h>
#include "core.h"
*/
import "C"

import (
	"math"
	"time"
	"unsafe"
)

// forever is the deadline of a call that has none.
const forever = math.MaxUint64

// batchSize is the number of events that are taken at once: more are of no use to the core.
const batchSize = 64

// core is the functions of libthalweg.so, which are valid for ever.
type core struct {
	c *C.tw_guest_core
}

// now returns the current time of the clock of all deadlines.
func (c core) now() uint64 {
	return uint64(C.thalweg_now(c.c))
}

// answer ends a call with the message of its result or of its error.
func (c core) answer(call uint64, code Code, message []byte) Code {
	data := (*C.uint8_t)(unsafe.SliceData(message))
	return Code(C.thalweg_answer(c.c, C.tw_handle(call), C.uint32_t(code), data, C.uint64_t(len(message))))
}

// answerObject ends a call with a resource.
func (c core) answerObject(call uint64, kind uint32, object uint64) Code {
	return Code(C.thalweg_answer_resource(c.c, C.tw_handle(call), C.uint32_t(kind), C.uint64_t(object)))
}

// answerStream ends a call with a stream and returns its writer.
func (c core) answerStream(call uint64) (uint64, Code) {
	var writer C.tw_handle
	code := Code(C.thalweg_answer_stream(c.c, C.tw_handle(call), &writer))
	return uint64(writer), code
}

// fail ends a call without a result.
func (c core) fail(call uint64, code Code, text string) Code {
	data := (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
	return Code(C.thalweg_fail(c.c, C.tw_handle(call), C.uint32_t(code), data, C.uint64_t(len(text))))
}

// check returns why a call has ended; OK if it has not.
func (c core) check(call uint64) *Error {
	var why C.tw_error
	code := C.thalweg_call_check(c.c, C.tw_handle(call), &why)
	return errorOf(code, &why)
}

// object returns the object of a resource in the arguments.
func (c core) object(call, resource uint64, kind uint32, isOwn bool) (uint64, *Error) {
	var object C.uint64_t
	var why C.tw_error
	code := C.thalweg_object(c.c, C.tw_handle(call), C.tw_handle(resource), C.uint32_t(kind), C._Bool(isOwn), &object, &why)
	return uint64(object), errorOf(code, &why)
}

// newObjects makes handles of objects. It returns how many were made, and 0 for the others.
func (c core) newObjects(call uint64, kinds []uint32, objects []uint64) (handles []uint64, count int) {
	handles = make([]uint64, len(objects))
	made := C.thalweg_new_objects(c.c, C.tw_handle(call),
		(*C.uint32_t)(unsafe.SliceData(kinds)), (*C.uint64_t)(unsafe.SliceData(objects)), C.uint32_t(len(objects)),
		(*C.tw_handle)(unsafe.SliceData(handles)))
	return handles, int(made)
}

// openReader takes a stream or future of the arguments.
func (c core) openReader(call, stream uint64) (uint64, *Error) {
	var reader C.tw_handle
	var why C.tw_error
	code := C.thalweg_reader_open(c.c, C.tw_handle(call), C.tw_handle(stream), &reader, &why)
	return uint64(reader), errorOf(code, &why)
}

// receive returns the message of the next element. errNotReady: an event follows.
func (c core) receive(r *reader) ([]byte, *Error) {
	var why C.tw_error
	code := C.thalweg_reader_receive(c.c, C.tw_handle(r.handle), C.tw_handle(r.port.handle), C.uint64_t(r.waiter.token), &r.element, &why)
	switch code {
	case C.TW_OK:
		return bytesOf(&r.element), nil
	case C.TW_WOULD_PARK:
		return nil, errNotReady
	default:
		return nil, errorOf(code, &why)
	}
}

func (c core) closeReader(r *reader) {
	C.thalweg_reader_close(c.c, C.tw_handle(r.handle), &r.element)
}

// beginImport begins a call of the host. The waiter is woken when importAnswer has the answer.
func (c core) beginImport(call uint64, number uint32, args []byte, w *waiter) (uint64, *Error) {
	var hostCall C.tw_handle
	var why C.tw_error
	data := (*C.uint8_t)(unsafe.SliceData(args))
	code := C.thalweg_import_begin(c.c, C.tw_handle(call), C.uint32_t(number), data, C.uint64_t(len(args)), C.tw_handle(w.port.handle), C.uint64_t(w.token), &hostCall, &why)
	return uint64(hostCall), errorOf(code, &why)
}

// importAnswer returns the message of the result, or with ErrorPayload that of the error.
func (c core) importAnswer(hostCall uint64) ([]byte, *Error) {
	var answer C.tw_guest_message
	var why C.tw_error
	code := C.thalweg_import_answer(c.c, C.tw_handle(hostCall), &answer, &why)
	data := bytesOf(&answer)
	C.thalweg_message_release(c.c, &answer)
	return data, errorOf(code, &why)
}

func (c core) cancelImport(hostCall uint64) {
	C.thalweg_import_cancel(c.c, C.tw_handle(hostCall))
}

// bytesOf copies a message.
func bytesOf(message *C.tw_guest_message) []byte {
	return C.GoBytes(unsafe.Pointer(message.data), C.int(message.size))
}

// write writes count records without waiting, of which the first one is at first in data. It returns
// how many were written.
func (c core) write(writer uint64, data []byte, first, count int) (int, *Error) {
	var written C.uint32_t
	var why C.tw_error
	base := (*C.uint8_t)(unsafe.SliceData(data))
	code := C.thalweg_stream_write(c.c, C.tw_handle(writer), base, C.uint64_t(len(data)), C.uint32_t(first), C.uint32_t(count), &written, &why)
	return int(written), errorOf(code, &why)
}

// notifyWriter wakes the waiter when a stream that was full has room, or has ended.
func (c core) notifyWriter(writer uint64, w *waiter) *Error {
	var why C.tw_error
	code := C.thalweg_writer_notify(c.c, C.tw_handle(writer), C.tw_handle(w.port.handle), C.uint64_t(w.token), &why)
	return errorOf(code, &why)
}

// finish ends a stream regularly.
func (c core) finish(writer uint64) {
	C.thalweg_stream_finish(c.c, C.tw_handle(writer))
}

// failStream ends a stream with the message of an error.
func (c core) failStream(writer uint64, message []byte) Code {
	data := (*C.uint8_t)(unsafe.SliceData(message))
	return Code(C.thalweg_stream_fail(c.c, C.tw_handle(writer), data, C.uint64_t(len(message))))
}

// abort ends a stream because of a failure of the guest.
func (c core) abort(writer uint64, text string) {
	data := (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
	C.thalweg_stream_abort(c.c, C.tw_handle(writer), data, C.uint64_t(len(text)))
}

func errorOf(code C.uint32_t, why *C.tw_error) *Error {
	if Code(code) == OK {
		return nil
	}
	return &Error{Code: Code(code), Message: C.GoString(&why.message[0])}
}

// refuse fills in the reason why the guest cannot be opened.
func refuse(why *C.tw_error, refused *Error) C.uint32_t {
	if why != nil {
		text := C.CString(refused.Message)
		defer C.free(unsafe.Pointer(text))
		C.thalweg_refuse(why, C.uint32_t(refused.Code), text)
	}
	return C.uint32_t(refused.Code)
}

// takenEvents is memory for events that are taken from a port.
type takenEvents struct {
	all   *C.tw_guest_event
	count C.uint32_t
}

func newTakenEvents() takenEvents {
	size := C.size_t(batchSize) * C.size_t(unsafe.Sizeof(C.tw_guest_event{}))
	return takenEvents{all: (*C.tw_guest_event)(C.calloc(1, size))}
}

// free frees the memory. The events have been released.
func (t *takenEvents) free() {
	C.free(unsafe.Pointer(t.all))
}

// take releases the events that were taken before, and takes those that are available. It waits for some until
// the deadline; 0 is none. Returns false when the port has ended.
func (t *takenEvents) take(c core, port uint64, deadline uint64) bool {
	code := Code(C.thalweg_port_take(c.c, C.tw_handle(port), t.all, batchSize, C.uint64_t(deadline), &t.count))
	return code == OK || code == Interrupted
}

func (t *takenEvents) taken() []C.tw_guest_event {
	return unsafe.Slice(t.all, int(t.count))
}

// argsOf copies the arguments of a call.
func argsOf(call *C.tw_guest_call) []byte {
	return C.GoBytes(unsafe.Pointer(call.args), C.int(call.args_size))
}

// until returns the time at which a deadline is over.
func (c core) until(deadline uint64) time.Time {
	now, clock := time.Now(), c.now()
	if deadline <= clock {
		return now.Add(-time.Duration(min(clock-deadline, math.MaxInt64)))
	}
	return now.Add(time.Duration(min(deadline-clock, math.MaxInt64)))
}
