package guest

import (
	"errors"
	"iter"
	"sync"
	"time"

	"thalweg.dev/go/thalweg/wire"
)

const (
	// The records of a batch take at most this many bytes, without their tails, and at least one record.
	batchBytes = 16 << 10
	// A batch with tails of this size is full.
	batchTails = 256 << 10
	// The most records of a batch.
	batchRecords = 512
	// A record that follows the one before it within this time belongs to a burst.
	burstGap = 2 * time.Microsecond
	// The records of a burst that are written one at a time. Later ones are written in batches.
	burstRecords = 64
)

// recordWriter writes the records of a stream.
//
//  1. Records of a slow stream are written one at a time, by the goroutine of the sequence. They are visible
//     when yield returns.
//  2. In a long burst, that goroutine adds records to filling, and waits while it is full. A second
//     goroutine exchanges filling, if it has records, with an empty batch, and writes it.
//  3. Only one goroutine writes at a time: the first one only while filling is empty and isFlushing is false.
//  4. The goroutine that writes waits while the stream is full. No thread waits in C.
type recordWriter[T any] struct {
	core    core
	handle  uint64
	element Element[T]
	port    *port
	waiter  *waiter // nil if the stream was never full

	mu         sync.Mutex
	changed    sync.Cond // filling, isEnding or failure
	filling    *batch
	isFlushing bool
	isEnding   bool
	failure    *Error // why no more records can be written; nil if they can

	burst     int // records so far
	lastAdded time.Time

	flushed chan struct{} // closed when the second goroutine has ended; nil if it never began
}

// batch is adjacent records, with capacity for some more, and their tails.
type batch struct {
	w     wire.Writer
	count int
}

func newRecordWriter[T any](p *port, handle uint64, element Element[T]) *recordWriter[T] {
	w := &recordWriter[T]{core: p.core, handle: handle, element: element, port: p}
	w.changed.L = &w.mu
	w.filling = w.newBatch()
	return w
}

// capacity returns the number of records of a batch.
func (w *recordWriter[T]) capacity() int {
	return max(1, min(batchRecords, batchBytes/max(w.element.Size, 1)))
}

func (w *recordWriter[T]) newBatch() *batch {
	b := new(batch)
	b.w.BeginRecords(w.capacity() * w.element.Size)
	return b
}

func (w *recordWriter[T]) isFull() bool {
	return w.filling.count == w.capacity() || w.filling.w.Len() > batchTails
}

// errEnded ends the iteration of a sequence, because the stream has ended.
var errEnded = errors.New("the stream has ended")

// writeAll adds all records of a sequence. Returns the error that ended it.
func (w *recordWriter[T]) writeAll(records iter.Seq2[T, error]) error {
	for value, err := range records {
		if err != nil {
			return err
		}
		if !w.add(value) {
			return errEnded
		}
	}
	return nil
}

// add adds a record. Returns false if the stream has ended.
func (w *recordWriter[T]) add(value T) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.failure == nil && w.isFull() {
		w.changed.Wait()
	}
	if w.failure != nil {
		return false
	}
	w.element.Put(&w.filling.w, w.filling.count*w.element.Size, value)
	w.filling.count++
	if w.mustWriteNow() {
		w.failure = w.write(w.filling)
		w.clear(w.filling)
		w.lastAdded = time.Now()
		return w.failure == nil
	}
	if w.flushed == nil {
		w.flushed = make(chan struct{})
		go w.flush()
	}
	w.changed.Signal()
	return true
}

// mustWriteNow reports whether a record that was just added is written by the same goroutine.
func (w *recordWriter[T]) mustWriteNow() bool {
	if w.filling.count > 1 || w.isFlushing {
		return false
	}
	now := time.Now()
	if now.Sub(w.lastAdded) > burstGap {
		w.burst = 0
	}
	w.burst++
	w.lastAdded = now
	return w.burst <= burstRecords
}

// flush writes batches until the end.
func (w *recordWriter[T]) flush() {
	defer close(w.flushed)
	writing := w.newBatch()
	for {
		w.mu.Lock()
		for w.filling.count == 0 && !w.isEnding {
			w.changed.Wait()
		}
		if w.filling.count == 0 {
			w.mu.Unlock()
			return
		}
		writing, w.filling = w.filling, writing
		w.isFlushing = true
		w.changed.Signal()
		w.mu.Unlock()
		err := w.write(writing)
		w.clear(writing)
		w.mu.Lock()
		w.isFlushing = false
		w.failure = err
		w.changed.Signal()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *recordWriter[T]) clear(b *batch) {
	b.count = 0
	b.w.BeginRecords(w.capacity() * w.element.Size)
}

// write writes a batch. It waits while the stream is full.
func (w *recordWriter[T]) write(b *batch) *Error {
	data, err := b.w.Records()
	if err != nil {
		return &Error{BadArgument, err.Error()}
	}
	for first := 0; ; {
		written, err := w.core.write(w.handle, data, first*w.element.Size, b.count-first)
		first += written
		if err == nil || (err.Code != TimedOut && err.Code != WouldPark) {
			return err
		}
		if err := w.waitForRoom(); err != nil {
			return err
		}
	}
}

func (w *recordWriter[T]) waitForRoom() *Error {
	if w.waiter == nil {
		w.waiter = w.port.newWaiter()
	}
	if err := w.core.notifyWriter(w.handle, w.waiter); err != nil {
		return err
	}
	<-w.waiter.ready
	return nil
}

// end writes the records that run adds, and ends the stream.
func (w *recordWriter[T]) end(encode Encode, run func() error) {
	isDone := false
	defer func() {
		value := recover()
		w.finishFlush()
		switch {
		case value != nil:
			w.core.abort(w.handle, panicText(value))
		case !isDone:
			w.core.abort(w.handle, "the goroutine of the stream has ended")
		}
	}()
	err := run()
	w.finishFlush()
	isDone = true
	switch {
	case w.failure != nil && w.failure.Code == BadArgument:
		w.core.abort(w.handle, "a send failed: argument: "+w.failure.Message)
	case w.failure != nil && w.failure.Code == Overloaded:
		w.core.abort(w.handle, "a send failed: overloaded: "+w.failure.Message)
	case w.failure != nil || err == nil:
		w.core.finish(w.handle)
	default:
		w.fail(err, encode)
	}
}

// fail ends the stream with an error.
func (w *recordWriter[T]) fail(err error, encode Encode) {
	_, text := outcomeOf(err)
	var message wire.Writer
	message.Begin(0, 0)
	if encode != nil && encode(&message, err) {
		data, failed := message.End()
		if failed == nil && len(message.Objects()) == 0 && w.core.failStream(w.handle, data) != BadArgument {
			return
		}
		text = "the error of the stream is malformed"
	}
	w.core.abort(w.handle, text)
}

// finishFlush waits until all records are written.
func (w *recordWriter[T]) finishFlush() {
	w.mu.Lock()
	w.isEnding = true
	w.changed.Signal()
	w.mu.Unlock()
	if w.flushed != nil {
		<-w.flushed
	}
	if w.waiter != nil {
		w.waiter.end()
	}
}
