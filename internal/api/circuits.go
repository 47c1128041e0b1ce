package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"exchange-gateway/internal/api/stream"
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
	case stream.Foreign(r):
		return stream.ErrForeignOrigin
	}
	if err := s.watchers.enter(); err != nil {
		return err
	}
	defer s.watchers.leave()
	w, err := s.cfg.Board.Watch(clip(r.Header.Get("Last-Event-Id")))
	switch {
	case errors.Is(err, ops.ErrStopped):
		return stream.ErrStopping
	case err != nil:
		return &requestError{code: CodeOverloaded, detail: "Too many clients follow the events already: " + strconv.Itoa(ops.MaxWatchers) + "."}
	}
	defer w.Close()
	s.metrics.watches[s.watchers.serve(c, r, w)].Inc()
	return nil
}
