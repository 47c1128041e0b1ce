package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Types of the messages of a stream.
const (
	typeSnapshot  = "snapshot"
	typeUpdate    = "update"
	typeStatus    = "status"
	typeError     = "error"
	typeHeartbeat = "heartbeat"
)

// message is one message of the gateway's stream. What a type does not have is zero.
type message struct {
	Type           string  `json:"type"`
	Channel        Channel `json:"channel"`
	Exchange       string  `json:"exchange"`
	Symbol         string  `json:"symbol"`
	ExchangeSymbol string  `json:"exchange_symbol"`
	Depth          int     `json:"depth"`
	Epoch          string  `json:"epoch"`

	Seq          uint64    `json:"seq"`
	PrevSeq      *uint64   `json:"prev_seq"` // nil in a snapshot
	Status       string    `json:"status"`
	Reason       string    `json:"reason"`
	Since        time.Time `json:"since"`
	Complete     bool      `json:"complete"`
	ExchangeSeq  *int64    `json:"exchange_seq"`
	ExchangeTime time.Time `json:"exchange_time"`
	ConfirmedAt  time.Time `json:"confirmed_at"`
	ChangedAt    time.Time `json:"changed_at"`
	SentAt       time.Time `json:"sent_at"`
	Conflated    uint64    `json:"conflated"`

	Bids []Level `json:"bids"`
	Asks []Level `json:"asks"`
	Top

	Code         Code     `json:"code"`
	Detail       string   `json:"detail"`
	Field        string   `json:"field"`
	Allowed      []string `json:"allowed"`
	RetryAfterMS int64    `json:"retry_after_ms"`
}

// Top is the best of both sides of a book. A Number is unknown where a side is empty.
type Top struct {
	Bid       Number `json:"bid"`
	BidVolume Number `json:"bidVolume"`
	Ask       Number `json:"ask"`
	AskVolume Number `json:"askVolume"`
	Mid       Number `json:"mid"`
	Spread    Number `json:"spread"`
}

// errBadMessage is a message that cannot be read or cannot be true. What is held is not changed by any part of it.
var errBadMessage = errors.New("a message that makes no sense")

// decode reads one message. A type or a field that is not known is no fault.
func decode(text []byte) (*message, error) {
	m := new(message)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadMessage, err)
	}
	if m.Type == "" {
		return nil, fmt.Errorf("%w: it has no type", errBadMessage)
	}
	return m, nil
}

func (m *message) err() *Error {
	wait := milliseconds(max(0, m.RetryAfterMS))
	return &Error{
		Code: m.Code, Detail: m.Detail, Exchange: m.Exchange, Symbol: m.Symbol, Retryable: wait > 0, RetryAfter: wait,
		Parameter: m.Field, Allowed: m.Allowed,
	}
}
