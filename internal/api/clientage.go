package api

import "exchange-gateway/internal/gateway"

// ownAge is the age of a book that the caller's client takes where a request names none; unset where nobody said any.
func (s *Server) ownAge(c *call) gateway.Age {
	if c.key == nil {
		return gateway.Age{}
	}
	if own := s.cfg.Keys.Client(c.key.Client).MaxAge; own > 0 {
		return gateway.MaxAge(own)
	}
	return gateway.Age{}
}

// maxAge is the age of a book that a request takes: its own, else its client's.
func (s *Server) maxAge(c *call, q *query) (gateway.Age, error) {
	if _, named := q.get("max_age_ms"); named {
		return q.maxAge()
	}
	return s.ownAge(c), nil
}
