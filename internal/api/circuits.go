package api

import (
	"context"
	"errors"
	"net/http"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/ops"
)

// circuits answers GET /v1/circuits.
func (s *Server) circuits(_ context.Context, c *call, r *http.Request, _ *query) error {
	c.doc.b = append(c.doc.b, s.cfg.Board.Snapshot()...)
	s.sendPacked(c, r, http.StatusOK)
	return nil
}

// circuitEvents answers GET /v1/circuits/events for as long as the client stays.
func (s *Server) circuitEvents(_ context.Context, c *call, r *http.Request, _ *query) error {
	switch {
	case s.draining.Load():
		return stream.ErrStopping
	case s.foreign(c, r):
		return stream.ErrForeignOrigin
	}
	if err := s.watchers.enter(c.public); err != nil {
		return err
	}
	defer s.watchers.leave(c.public)
	w, err := s.cfg.Board.Watch(clip(r.Header.Get("Last-Event-Id")))
	switch {
	case errors.Is(err, ops.ErrStopped):
		return stream.ErrStopping
	case err != nil:
		return tooManyWatch(ops.MaxWatchers)
	}
	defer w.Close()
	if attends(c, r) {
		w.Attend()
	}
	s.metrics.watches[s.watchers.serve(c, r, w, s.life(c, r))].Inc()
	return nil
}

// attends tells whether open circuits are probed for a client: it is an operator, by a key or a session with ops:read, or somebody
// on this machine. What others look at costs an exchange nothing.
func attends(c *call, r *http.Request) bool {
	if c.key != nil {
		return c.key.Scopes.Has(keys.OpsRead)
	}
	return address(r).Unmap().IsLoopback()
}

// life has a function called when what a call was let in with is no longer valid: its key, or the session that stands for it.
func (s *Server) life(c *call, r *http.Request) func(end func()) (stop func()) {
	k, cookie := c.key, c.cookie
	switch {
	case k == nil:
		return func(func()) func() { return func() {} }
	case cookie == "":
		return s.holding(k, address(r))
	}
	return held(k, address(r), func(end func()) func() {
		return s.lives.poll(func() bool {
			_, _, ok := s.sessions.Check(cookie, clock.Now())
			return ok
		}, end)
	})
}
