package guest

/*
#include "core.h"
*/
import "C"

import (
	"sync"
	"time"
	"unsafe"
)

const (
	// The most answers that one crossing to C takes.
	mostAnswers = C.THALWEG_MOST_ANSWERS
	// How long the goroutine of the port holds answers back: a few times as long as it takes to wake the
	// program.
	longestHeld = 20 * time.Microsecond
	// The time is looked at after this many answers, because that takes as long as a short call.
	heldPerLook = 8
	// A longer message is not copied, and has a crossing of its own.
	longestCopied = 4 << 10
	// How many times a goroutine sends before another one goes on, because it has work of its own.
	mostTurns = 4
)

// answers sends the answers of calls. A crossing to C and the waking of the program cost more than most calls.
//
//  1. An answer is added to filling. A goroutine that finds no other one that sends, sends: first its own
//     answer, and then together those that others have added meanwhile. An answer alone is sent at once.
//  2. The goroutine of the port holds its answers back while it serves the events of one take, for longestHeld.
//     A goroutine that serves a queue of short calls leaves its answers to another goroutine, which the scheduler
//     runs at once if the next call waits.
//  3. A panic ends the state, and with it calls whose answers were not sent. It waits for them.
type answers struct {
	core core

	mu        sync.Mutex
	sent      sync.Cond // isSending is false
	filling   *answerBatch
	spare     *answerBatch
	isSending bool
	isStarted bool      // a goroutine that sends was started, and has not begun
	heldSince time.Time // when the first answer of filling was held back
}

// urgency is when an answer is sent.
type urgency int

const (
	now       urgency = iota
	soon              // by another goroutine
	untilSend         // by the goroutine that adds it
)

// answerBatch is answers whose messages are adjacent, each from a multiple of 8 bytes.
type answerBatch struct {
	all  []C.thalweg_result
	data []byte
}

func newAnswers(c core) *answers {
	a := &answers{core: c, filling: new(answerBatch), spare: new(answerBatch)}
	a.sent.L = &a.mu
	return a
}

// add answers a call. With the urgency untilSend, send follows.
func (a *answers) add(call uint64, code Code, message []byte, when urgency) {
	if len(message) > longestCopied {
		a.core.answer(call, code, message)
		return
	}
	a.mu.Lock()
	b := a.filling
	b.all = append(b.all, C.thalweg_result{call: C.tw_handle(call), code: C.uint32_t(code), size: C.uint32_t(len(message))})
	b.data = append(b.data, message...)
	for len(b.data)%8 != 0 {
		b.data = append(b.data, 0)
	}
	if when == now || !a.mayHold(len(b.all)) {
		a.sendLocked()
		return
	}
	if when == soon && !a.isStarted {
		a.isStarted = true
		go a.send()
	}
	a.mu.Unlock()
}

// mayHold reports whether the last one of count answers may be held back.
func (a *answers) mayHold(count int) bool {
	if count == 1 {
		a.heldSince = time.Now()
	}
	return count < mostAnswers && (count%heldPerLook != 0 || time.Since(a.heldSince) < longestHeld)
}

// send sends the answers that were held back.
func (a *answers) send() {
	a.mu.Lock()
	a.isStarted = false
	a.sendLocked()
}

// sendLocked sends all answers, unless another goroutine does. It releases the lock.
func (a *answers) sendLocked() {
	if a.isSending {
		a.mu.Unlock()
		return
	}
	for turns := 0; len(a.filling.all) > 0; turns++ {
		if turns == mostTurns {
			go a.send()
			break
		}
		b := a.filling
		a.filling, a.spare = a.spare, nil
		a.isSending = true
		a.mu.Unlock()
		a.core.answerMany(b)
		b.all, b.data = b.all[:0], b.data[:0]
		a.mu.Lock()
		a.spare = b
		a.isSending = false
	}
	a.sent.Broadcast()
	a.mu.Unlock()
}

// waitUntilSent waits until all answers so far are sent.
func (a *answers) waitUntilSent() {
	a.mu.Lock()
	for a.isSending {
		a.sent.Wait()
	}
	a.sendLocked()
}

// answerMany ends calls with messages of results or errors.
func (c core) answerMany(b *answerBatch) {
	for first, at := 0, 0; first < len(b.all); {
		some := b.all[first:min(first+mostAnswers, len(b.all))]
		C.thalweg_answer_many(c.c, unsafe.SliceData(some), C.uint32_t(len(some)), (*C.uint8_t)(unsafe.SliceData(b.data[at:])))
		for _, one := range some {
			at += (int(one.size) + 7) &^ 7
		}
		first += len(some)
	}
}
