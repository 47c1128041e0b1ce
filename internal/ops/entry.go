package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// entry is one event of the journal, encoded once for everybody who will ever see it. It is immutable.
type entry struct {
	id    string
	at    time.Time
	frame []byte // as it is sent: id, event and data
	text  []byte // the event's JSON, a part of frame
}

// Frames of server-sent events are made of these.
const (
	frameEvent    = "event: event\ndata: "
	frameState    = "event: state\ndata: "
	frameSnapshot = "event: snapshot\ndata: "
	frameEnd      = "\n\n"
)

func newEntry(ev *market.Event) (*entry, error) {
	text, err := json.Marshal(ev) // holds no line break, so it is one line of data
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	id := ev.ID()
	head := "id: " + id + "\n" + frameEvent
	frame := bytes.Join([][]byte{[]byte(head), text, []byte(frameEnd)}, nil)
	return &entry{id: id, at: ev.At, frame: frame, text: frame[len(head) : len(head)+len(text)]}, nil
}
