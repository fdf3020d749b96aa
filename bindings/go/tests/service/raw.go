package service

/*
#cgo CFLAGS: -I${SRCDIR}/../../../c/include
#include <stdbool.h>

#include "thalweg_guest.h"

static uint32_t answer(const void *core, tw_handle call, uint32_t code, const void *data, uint64_t size) {
  return ((const tw_guest_core *)core)->answer(call, code, data, size, NULL);
}
static uint32_t fail(const void *core, tw_handle call, uint32_t code) {
  return ((const tw_guest_core *)core)->fail(call, code, "no", 2, NULL);
}
static uint32_t object(const void *core, tw_handle call, tw_handle resource) {
  uint64_t object;
  return ((const tw_guest_core *)core)->resource_get(call, resource, 0, &object, NULL);
}
static tw_handle new_object(const void *core, tw_handle call, uint64_t object) {
  tw_handle handle = 0;
  ((const tw_guest_core *)core)->resource_new(call, 0, object, &handle, NULL);
  return handle;
}
static bool refuses_streams(const void *given, tw_handle call) {
  const tw_guest_core *core = (const tw_guest_core *)given;
  tw_handle handle;
  uint64_t record = 1;
  return core->answer_stream(call, &handle, NULL) == TW_ARGUMENT &&
         core->stream_write(77, (const uint8_t *)&record, 8, 0, 1, 0, 0, NULL, NULL) != TW_OK &&
         core->stream_finish(call, NULL) != TW_OK;
}
*/
import "C"

import (
	"encoding/binary"
	"hash/fnv"
	"unsafe"

	"thalweg.dev/go/thalweg/guest"
	"thalweg.dev/go/thalweg/wire"
)

// layout returns what the header of a message has for a type.
func layout(description string) uint32 {
	hash := fnv.New64a()
	hash.Write([]byte(description))
	return uint32(hash.Sum64())
}

func answer(core unsafe.Pointer, call uint64, code guest.Code, message []byte) guest.Code {
	data := unsafe.Pointer(unsafe.SliceData(message))
	return guest.Code(C.answer(core, C.tw_handle(call), C.uint32_t(code), data, C.uint64_t(len(message))))
}

func answerText(core unsafe.Pointer, call uint64, text string) guest.Code {
	var w wire.Writer
	w.Text(w.Begin(layout("string"), 8), text)
	message, _ := w.End()
	return answer(core, call, guest.OK, message)
}

// answerError ends a call with a case that the error of its function does not have.
func answerError(core unsafe.Pointer, call uint64) guest.Code {
	var w wire.Writer
	w.U32(w.Begin(layout("variant{too-long(u32),because(string),unknown}"), 16), 77)
	message, _ := w.End()
	return answer(core, call, guest.ErrorPayload, message)
}

// answerHandle ends a call, whose result is a string, with a message that has a handle.
func answerHandle(core unsafe.Pointer, call uint64) {
	message := make([]byte, 32)
	binary.LittleEndian.PutUint32(message, 32)
	binary.LittleEndian.PutUint32(message[4:], layout("string"))
	binary.LittleEndian.PutUint32(message[8:], 1)
	binary.LittleEndian.PutUint32(message[12:], 24)
	binary.LittleEndian.PutUint64(message[16:], uint64(C.new_object(core, C.tw_handle(call), 0)))
	answer(core, call, guest.OK, message)
}

func fail(core unsafe.Pointer, call uint64, code guest.Code) guest.Code {
	return guest.Code(C.fail(core, C.tw_handle(call), C.uint32_t(code)))
}

func object(core unsafe.Pointer, call, resource uint64) guest.Code {
	return guest.Code(C.object(core, C.tw_handle(call), C.tw_handle(resource)))
}

func refusesStreams(core unsafe.Pointer, call uint64) bool {
	return bool(C.refuses_streams(core, C.tw_handle(call)))
}
