// Command go_chan is Go's own channel as a side of the lab: a program that takes one sample a line of its input.
//
//	hand_over CAPACITY SENDERS RECEIVERS MESSAGES
//
// moves MESSAGES between that many goroutines on each side, checks all of them as the lab's other sides do, and answers
// {"ns": N, "wrong": ""}, timed from the start gate to the last message.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Bits of a message that count; the rest is the sender's number.
const sequenceBits = 40
const sequenceMask = 1<<sequenceBits - 1

type answer struct {
	Ns    int64  `json:"ns"`
	Wrong string `json:"wrong"`
}

// tally is what one receiver got from one sender.
type tally struct {
	next, count, sum uint64
	wrong            bool
}

type end struct {
	began, ended time.Time
	tallies      []tally
}

func main() {
	fmt.Println(`{"ready": true}`)
	input := bufio.NewScanner(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var capacity, senders, receivers int
		var messages uint64
		_, err := fmt.Sscanf(input.Text(), "hand_over %d %d %d %d", &capacity, &senders, &receivers, &messages)
		reply := answer{Wrong: "not a command: " + input.Text()}
		if err == nil {
			reply = handOver(capacity, senders, receivers, messages)
		}
		if err := output.Encode(reply); err != nil {
			os.Exit(1)
		}
	}
}

func handOver(capacity, senders, receivers int, messages uint64) answer {
	channel := make(chan uint64, capacity)
	gate := make(chan struct{})
	ends := make(chan end, senders+receivers)
	var ready sync.WaitGroup
	ready.Add(senders + receivers)
	each, share := messages/uint64(senders), messages/uint64(receivers)
	for number := 0; number < senders; number++ {
		go func(number uint64) {
			ready.Done()
			<-gate
			began := time.Now()
			first := number << sequenceBits
			for message := first; message < first+each; message++ {
				channel <- message
			}
			ends <- end{began: began, ended: time.Now()}
		}(uint64(number))
	}
	for i := 0; i < receivers; i++ {
		go func() {
			ready.Done()
			<-gate
			began := time.Now()
			tallies := receive(channel, senders, share)
			ends <- end{began, time.Now(), tallies}
		}()
	}
	ready.Wait()
	close(gate)

	var first, last time.Time
	all := make([]tally, senders)
	for i := 0; i < senders+receivers; i++ {
		end := <-ends
		if first.IsZero() || end.began.Before(first) {
			first = end.began
		}
		if end.tallies != nil && end.ended.After(last) {
			last = end.ended
		}
		for sender, part := range end.tallies {
			all[sender].count += part.count
			all[sender].sum += part.sum
			all[sender].wrong = all[sender].wrong || part.wrong
		}
	}
	for sender, sum := range all {
		if sum.wrong || sum.count != each || sum.sum != each*(each-1)/2 {
			return answer{Wrong: fmt.Sprintf("of %d messages of sender %d %d arrived, or not in order",
				each, sender, sum.count)}
		}
	}
	return answer{Ns: last.Sub(first).Nanoseconds()}
}

// One sender's messages come in order; where there is one receiver, without a gap, which count and sum then show.
func receive(channel chan uint64, senders int, count uint64) []tally {
	tallies := make([]tally, senders)
	for i := uint64(0); i < count; i++ {
		message := <-channel
		tally := &tallies[message>>sequenceBits]
		sequence := message & sequenceMask
		if sequence < tally.next {
			tally.wrong = true
		}
		tally.next = sequence + 1
		tally.count++
		tally.sum += sequence
	}
	return tallies
}
