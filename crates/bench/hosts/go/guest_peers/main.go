// Command guest_peers is what a call of a guest in Go is compared with. It takes one sample a line of its input:
//
//	netpoll COUNT UNCOUNTED
//
// has a thread of C write an eventfd that a goroutine waits for in the poller of the Go runtime, and wait in read() for
// the answer in another one. It answers {"latencies": [ns, ..]} of COUNT round trips, after UNCOUNTED more.
//
//	channel COUNT IN_FLIGHT
//
// sends COUNT numbers through a channel to another goroutine, and each goroutine crosses to C once for each number.
// A second channel bounds how many of them are on their way. It answers {"ns", "records", "checksum"}.
package main

/*
#include "peers.h"
*/
import "C"

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"
)

type latencies struct {
	Latencies []uint64 `json:"latencies"`
}

type reading struct {
	Ns       int64  `json:"ns"`
	Records  uint64 `json:"records"`
	Checksum uint64 `json:"checksum"`
}

// eventfds are the way to a goroutine and the way back.
type eventfds struct {
	request, answer int
}

// openEventfds starts the goroutine, which answers each number with the same number.
func openEventfds() eventfds {
	e := eventfds{int(C.new_eventfd(1)), int(C.new_eventfd(0))}
	request := os.NewFile(uintptr(e.request), "request")
	go func() {
		var number [8]byte
		for {
			if _, err := request.Read(number[:]); err != nil {
				panic(err)
			}
			if _, err := syscall.Write(e.answer, number[:]); err != nil {
				panic(err)
			}
		}
	}()
	return e
}

func (e eventfds) roundTrips(count, uncounted int) latencies {
	each := make([]uint64, count+1)
	C.round_trips(C.int(e.request), C.int(e.answer), C.int(uncounted), C.int(count), (*C.uint64_t)(&each[0]))
	return latencies{each[:count]}
}

func channel(count uint64, inFlight int) reading {
	values, room := make(chan uint64, inFlight), make(chan struct{}, inFlight)
	began := time.Now()
	go func() {
		for number := uint64(0); number < count; number++ {
			room <- struct{}{}
			C.cross()
			values <- number
		}
		close(values)
	}()
	var read reading
	for number := range values {
		C.cross()
		<-room
		read.Records++
		read.Checksum += number
	}
	read.Ns = time.Since(began).Nanoseconds()
	return read
}

func main() {
	e := openEventfds()
	fmt.Println(`{"ready": true}`)
	input := bufio.NewScanner(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var command string
		var count, other int
		_, err := fmt.Sscan(input.Text(), &command, &count, &other)
		var answer any
		switch {
		case err == nil && command == "netpoll" && count >= 0:
			answer = e.roundTrips(count, other)
		case err == nil && command == "channel" && count >= 0 && other > 0:
			answer = channel(uint64(count), other)
		default:
			fmt.Fprintln(os.Stderr, "guest_peers: not a command:", input.Text())
			os.Exit(1)
		}
		if err := output.Encode(answer); err != nil {
			os.Exit(1)
		}
	}
}
