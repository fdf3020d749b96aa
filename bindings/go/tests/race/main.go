// A program that is its own guest, for the race detector: race SHIM.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../../c/include -D_XOPEN_SOURCE=700
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "host.h"
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	_ "thalweg.dev/go/thalweg/tests/service"
)

func main() {
	shim := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(shim))
	address := C.CString("thread:" + os.Args[1])
	defer C.free(unsafe.Pointer(address))
	if C.use_own_guest(shim) != 0 {
		os.Exit(1)
	}
	before := runtime.NumGoroutine()
	var hosts sync.WaitGroup
	for range 4 {
		hosts.Add(1)
		go func() {
			defer hosts.Done()
			for range 20 {
				if C.open_and_call(address, 10) != 0 {
					os.Exit(1)
				}
			}
		}()
	}
	hosts.Wait()
	for tries := 0; runtime.NumGoroutine() > before; tries++ {
		if tries == 1000 {
			fmt.Println(runtime.NumGoroutine(), "goroutines are left, of", before)
			os.Exit(1)
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("race: no race, and no goroutine is left")
}
