package ops

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// Bounds of watching. Frames are shared, so what a slow watcher holds up is a list of pointers; 256 events are what a bad
// minute brings, and who is that far behind does better with a new snapshot.
const (
	MaxWatchers = 200
	maxBehind   = 256
	pingAfter   = 5 * time.Second
)

// Frames that are the same for everybody.
const (
	frameRetry = "retry: 1000\n\n"
	framePing  = ": ping\n\n"
)

// Errors of watching.
var (
	ErrFull    = errors.New("too many watchers")            // MaxWatchers are connected
	ErrSlow    = errors.New("the watcher does not keep up") // it is more than 256 events behind
	ErrStopped = errors.New("the board is closed")          // Close was called before
)

// watchers are those who watch.
type watchers struct {
	mu      sync.Mutex
	all     map[*Watcher]struct{}
	stopped bool
}

func (ws *watchers) none() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all) == 0
}

// event queues an event for everybody and returns how many were cut off for being slow.
func (ws *watchers) event(e *entry) (slow int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		if !w.event(e) {
			delete(ws.all, w)
			slow++
		}
	}
	return slow
}

// state shows everybody a new moment, in the place of one that was not taken yet.
func (ws *watchers) state(m *moment) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		w.show(m)
	}
}

// Watcher is one who watches. Its frames are ready server-sent events, shared by all: nobody changes them. Next belongs to
// one goroutine; Close may be called at any time.
type Watcher struct {
	board    *Board
	wake     chan struct{}
	idle     *time.Timer
	attended bool // see Attend; guarded by the lock of watchers

	mu     sync.Mutex
	first  [][]byte // what it begins with, in order
	missed []*entry // what happened between what it begins with and its first event; at most what the journal keeps
	events []*entry // what happened since; at most maxBehind
	newest *moment  // nil if it was sent
	bye    []byte   // nil until the board closes
	err    error    // why it ended
}

// Watch begins to watch. lastID is the id of the last event that the watcher knows, "" if it knows none: if that event is
// kept, the first frames are the events after it; otherwise the first frame is a snapshot. The caller closes the watcher.
func (b *Board) Watch(lastID string) (*Watcher, error) {
	if err := b.watchers.room(); err != nil {
		return nil, err
	}
	w := &Watcher{board: b, wake: make(chan struct{}, 1), idle: time.NewTimer(pingAfter), first: [][]byte{[]byte(frameRetry)}}
	m := b.look()
	m.encode()
	j := b.cfg.Journal
	j.mu.Lock()
	missed, known := j.after(lastID)
	switch {
	case !known:
		j.mu.Unlock()
		snapshot := b.snapshotFrame(m) // takes its time if nobody asked before
		w.first = append(w.first, snapshot)
		j.mu.Lock()
		missed = j.from(m.next)
	case m.next == j.next(): // else it shows less than the events before it, and the next one comes within 100 ms
		w.newest = m
	}
	w.missed = missed
	err := b.watchers.add(w) // under the journal's lock: from here on it hears of every event
	j.mu.Unlock()
	if err != nil {
		return nil, err
	}
	signal(b.wake)
	return w, nil
}

// room tells whether one more may watch, before any work is done for it.
func (ws *watchers) room() error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.full()
}

func (ws *watchers) full() error {
	switch {
	case ws.stopped:
		return ErrStopped
	case len(ws.all) >= MaxWatchers:
		return ErrFull
	}
	return nil
}

func (ws *watchers) add(w *Watcher) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if err := ws.full(); err != nil {
		return err
	}
	ws.all[w] = struct{}{}
	return nil
}

// Attend says that somebody looks on who may have exchanges asked: an exchange whose circuit is open and that no client asks is
// then probed at the circuit's own pace, so that the watcher learns that it answers again.
func (w *Watcher) Attend() {
	ws := &w.board.watchers
	ws.mu.Lock()
	w.attended = true
	ws.mu.Unlock()
	signal(w.board.wake)
}

// attended tells whether one of those who watch attends.
func (ws *watchers) attended() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		if w.attended {
			return true
		}
	}
	return false
}

// Watchers is how many watch.
func (b *Board) Watchers() int {
	b.watchers.mu.Lock()
	defer b.watchers.mu.Unlock()
	return len(b.watchers.all)
}

// Close ends every watcher with a last frame that tells the reason, and lets nobody watch any more.
func (b *Board) Close(reason string) {
	text, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		text = []byte("{}") // a map of strings is always encoded
	}
	bye := []byte("event: bye\ndata: " + string(text) + frameEnd)
	ws := &b.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.stopped = true
	for w := range ws.all {
		w.mu.Lock()
		w.bye = bye
		w.mu.Unlock()
		signal(w.wake)
	}
	clear(ws.all)
}

// Close ends the watching. Next then returns io.EOF.
func (w *Watcher) Close() {
	ws := &w.board.watchers
	ws.mu.Lock()
	delete(ws.all, w)
	ws.mu.Unlock()
	w.idle.Stop()
	w.end(io.EOF)
}

func (w *Watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.first, w.missed, w.events, w.newest = nil, nil, nil, nil
	signal(w.wake)
}

// event queues an event, false if the watcher was cut off.
func (w *Watcher) event(e *entry) bool {
	w.mu.Lock()
	if len(w.events) < maxBehind {
		w.events = append(w.events, e)
		w.mu.Unlock()
		signal(w.wake)
		return true
	}
	w.mu.Unlock()
	w.end(ErrSlow)
	return false
}

func (w *Watcher) show(m *moment) {
	w.mu.Lock()
	w.newest = m
	w.mu.Unlock()
	signal(w.wake)
}

// Next waits for the next frame. When nothing else happened for 5 s it is a comment. After the last frame it returns io.EOF;
// ErrSlow if the watcher was cut off; the error of ctx if that ended.
func (w *Watcher) Next(ctx context.Context) ([]byte, error) {
	w.idle.Reset(pingAfter)
	for {
		if frame, err := w.take(); frame != nil || err != nil {
			return frame, err
		}
		select {
		case <-w.wake:
		case <-w.idle.C:
			return []byte(framePing), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take is the frame that is next in order: events before the state that shows what they did, and the farewell last.
func (w *Watcher) take() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return nil, w.err
	case len(w.first) > 0:
		frame := w.first[0]
		w.first = w.first[1:]
		return frame, nil
	case len(w.missed) > 0:
		return pop(&w.missed), nil
	case len(w.events) > 0:
		return pop(&w.events), nil
	case w.newest != nil:
		_, frame := w.newest.encode()
		w.newest = nil
		return frame, nil
	case w.bye != nil:
		frame := w.bye
		w.bye, w.err = nil, io.EOF
		return frame, nil
	}
	return nil, nil
}

// pop takes the first of a queue off. An empty queue lets its memory go.
func pop(queue *[]*entry) []byte {
	e := (*queue)[0]
	if *queue = (*queue)[1:]; len(*queue) == 0 {
		*queue = nil
	}
	return e.frame
}
