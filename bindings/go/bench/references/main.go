// What a call of a guest in Go is compared with: a goroutine that an eventfd wakes, and a channel between two
// goroutines that each cross to C.
package main

/*
#cgo LDFLAGS: -pthread
#include "references.h"
*/
import "C"

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

const rounds = 200_000

// eventfds returns the nanoseconds of a round trip from a thread of C to a goroutine that waits in the poller of the Go
// runtime, and back.
func eventfds() float64 {
	request, answer := int(C.new_eventfd(1)), int(C.new_eventfd(0))
	file := os.NewFile(uintptr(request), "request")
	defer file.Close()
	go func() {
		var counter [8]byte
		one := [8]byte{1}
		for {
			if _, err := file.Read(counter[:]); err != nil {
				return
			}
			if _, err := syscall.Write(answer, one[:]); err != nil {
				panic(err)
			}
		}
	}()
	return float64(C.round_trips(C.int(request), C.int(answer), rounds))
}

// channel returns the nanoseconds for a value of a channel that is sent and received after one crossing each. As many
// values as in flight are on their way.
func channel(inFlight int) float64 {
	values, room := make(chan int, inFlight), make(chan struct{}, inFlight)
	began := time.Now()
	go func() {
		for i := range rounds {
			room <- struct{}{}
			C.cross()
			values <- i
		}
	}()
	for range rounds {
		<-values
		C.cross()
		<-room
	}
	return float64(time.Since(began).Nanoseconds()) / rounds
}

// processor returns the processor time of the process, which other programs influence less.
func processor() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func measure(name string, run func() float64) {
	before := processor()
	ns := run()
	fmt.Printf("%s: %.0f ns, %d ns of processor time\n", name, ns, (processor()-before).Nanoseconds()/rounds)
}

func main() {
	for range 3 {
		measure("eventfd to a goroutine and back", eventfds)
		measure("channel and two crossings, 64 in flight", func() float64 { return channel(64) })
	}
}
