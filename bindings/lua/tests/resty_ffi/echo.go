// The echo of lua-resty-ffi's README, in Go.
package main

/*
#cgo LDFLAGS: -shared
#include <stdlib.h>
#include <string.h>

void *ngx_http_lua_ffi_task_poll(void *tq);
char *ngx_http_lua_ffi_get_req(void *task, int *len);
void ngx_http_lua_ffi_respond(void *task, int rc, char *rsp, int rsp_len);
*/
import "C"

import (
	"runtime"
	"unsafe"
)

func serve(tq unsafe.Pointer, collects bool) {
	for {
		task := C.ngx_http_lua_ffi_task_poll(tq)
		if task == nil {
			return
		}
		if collects {
			// It looks at the pointers tq and task.
			runtime.GC()
		}
		var size C.int
		request := C.ngx_http_lua_ffi_get_req(task, &size)
		answer := C.malloc(C.size_t(size) + 1)
		C.memcpy(answer, unsafe.Pointer(request), C.size_t(size)+1)
		C.ngx_http_lua_ffi_respond(task, 0, (*C.char)(answer), size)
	}
}

//export libffi_init
func libffi_init(cfg *C.char, tq unsafe.Pointer) C.int {
	go serve(tq, cfg != nil && C.GoString(cfg) == "gc")
	return 0
}

func main() {}
