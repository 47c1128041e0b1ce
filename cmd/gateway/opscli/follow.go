package opscli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

const (
	// quiet is how long a stream may say nothing: the gateway sends its state each second.
	quiet = 15 * time.Second
	// maxFrame bounds one frame, the first of which holds 24 hours of events.
	maxFrame = 32 << 20
	// Pauses before the next connect.
	firstPause = time.Second
	mostPause  = 10 * time.Second
)

// Follower gets events as they come.
type Follower struct {
	Event func(ev market.Event)
	Lost  func(why error)              // the connection ended and is tried again
	Back  func(away time.Duration)     // it is there again
	Since func(historySince time.Time) // once: from when on events are known
}

// Follow passes the events of the last 24 hours, and with forever those that come, in order and each once, until ctx ends.
// It connects again by itself and misses nothing that the gateway still knows. The first connect must succeed.
func (c *Client) Follow(ctx context.Context, forever bool, f Follower) error {
	s := stream{client: c, follower: f}
	pause := firstPause
	var lost time.Time
	for {
		err := s.read(ctx, forever, func() {
			pause = firstPause
			if !lost.IsZero() {
				f.Back(time.Since(lost))
				lost = time.Time{}
			}
		})
		switch {
		case ctx.Err() != nil, err == nil:
			return nil
		case s.last == "" && !s.begun:
			return err
		}
		if r, ok := errors.AsType[*Refusal](err); ok && r.Status != http.StatusServiceUnavailable {
			return err // a key that was revoked does not come back
		}
		if lost.IsZero() {
			lost = time.Now()
			f.Lost(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		pause = min(2*pause, mostPause)
	}
}

// stream is what is known across connections.
type stream struct {
	client   *Client
	follower Follower
	last     string // id of the last event that was passed on
	begun    bool   // a first frame has come
}

var errEnded = errors.New("the gateway closed the connection")

// read reads one connection. opened is called when its first frame has come.
func (s *stream) read(ctx context.Context, forever bool, opened func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(quiet, func() { cancel(fmt.Errorf("nothing came for %v", quiet)) })
	defer watchdog.Stop()
	res, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer res.Body.Close() // nothing was written
	r := bufio.NewReader(res.Body)
	for first := true; ; first = false {
		name, data, id, err := frame(r)
		if err != nil {
			if why := context.Cause(ctx); why != nil {
				return why
			}
			return err
		}
		watchdog.Reset(quiet)
		if first {
			s.begun = true
			opened()
		}
		if err := s.take(name, data, id); err != nil {
			return err
		}
		if !forever && name != "event" {
			return nil // the state that follows the last of the past
		}
	}
}

func (s *stream) open(ctx context.Context) (*http.Response, error) {
	path := "/v1/circuits/events"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.client.Base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.last != "" {
		req.Header.Set("Last-Event-ID", s.last)
	}
	res, err := s.client.send(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()                                  // nothing was written
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what cannot be read says nothing
		return nil, refusal(res, text)
	}
	return res, nil
}

// take passes on what a frame brings. An event that was passed on is not repeated: a snapshot holds all of 24 hours.
func (s *stream) take(name, data, id string) error {
	switch name {
	case "snapshot":
		var d struct {
			HistorySince time.Time      `json:"history_since"`
			Events       []market.Event `json:"events"`
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			return fmt.Errorf("a snapshot that cannot be read: %w", err)
		}
		if s.last == "" {
			s.follower.Since(d.HistorySince)
		}
		s.pass(d.Events)
		if id != "" {
			s.last = id
		}
	case "event":
		var ev market.Event
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return fmt.Errorf("an event that cannot be read: %w", err)
		}
		s.follower.Event(ev)
		s.last = ev.ID()
	case "bye":
		return errEnded
	}
	return nil
}

func (s *stream) pass(all []market.Event) {
	from := 0
	for i := range all {
		if all[i].ID() == s.last {
			from = i + 1
		}
	}
	for _, ev := range all[from:] {
		s.follower.Event(ev)
		s.last = ev.ID()
	}
}

// frame reads one server-sent event; comments are passed over.
func frame(r *bufio.Reader) (name, data, id string, err error) {
	var text strings.Builder
	for size := 0; ; {
		line, err := r.ReadString('\n')
		if size += len(line); err != nil {
			return "", "", "", unexpected(err)
		}
		if size > maxFrame {
			return "", "", "", fmt.Errorf("a frame of over %d bytes", maxFrame)
		}
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && (text.Len() > 0 || name != ""):
			return name, text.String(), id, nil
		case line == "": // what stood before said only how to reconnect
			name, id = "", ""
		case field == "event":
			name = value
		case field == "id":
			id = value
		case field == "data":
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(value)
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return err
}
