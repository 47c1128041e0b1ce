package stream

import (
	"encoding/json"
	"errors"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed/hub"
)

// errorMessage is `{"type":"error",...}`: what could not be done, for which topic, and when to try again.
type errorMessage struct {
	Type         string   `json:"type"`
	ID           string   `json:"id,omitempty"`
	Code         string   `json:"code"`
	Detail       string   `json:"detail"`
	Field        string   `json:"field,omitempty"`
	Allowed      []string `json:"allowed,omitempty"`
	Channel      string   `json:"channel,omitempty"`
	Exchange     string   `json:"exchange,omitempty"`
	Symbol       string   `json:"symbol,omitempty"`
	Depth        int      `json:"depth,omitempty"`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty"`
	SentAt       string   `json:"sent_at"`
}

// codeInvalid is the code of a message that cannot be followed, as of a request that has a wrong parameter.
const codeInvalid = "invalid_parameter"

// refuse encodes an error. t is the zero Topic where it concerns none.
func (s *Streams) refuse(id string, t hub.Topic, err error) []byte {
	m := errorMessage{
		Type: "error", ID: id, Channel: string(t.Channel), Exchange: string(t.Key.Exchange), Depth: t.Depth,
		SentAt: clock.WallNow().UTC().Format(time.RFC3339Nano),
	}
	if t.Key.Pair.Base != "" {
		m.Symbol = t.Key.Pair.String()
	}
	if b, ok := errors.AsType[*badRequest](err); ok {
		m.Code, m.Detail, m.Field, m.Allowed = codeInvalid, b.detail, b.field, b.allowed
	} else {
		p := s.cfg.Describe(err)
		m.Code, m.Detail, m.RetryAfterMS = p.Code, p.Detail, p.RetryAfter.Milliseconds()
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return text
}

// heartbeat answers a client's ping.
func heartbeat(now time.Time) []byte {
	return []byte(`{"type":"heartbeat","sent_at":"` + clock.Wall(now).UTC().Format(time.RFC3339Nano) + `"}`)
}
