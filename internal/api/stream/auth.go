package stream

import (
	"encoding/json"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed/hub"
)

// authenticate lets the client in with the key of its first message. A wrong one ends the connection, also where none is
// needed: whoever mistypes a key must not believe that it is used.
func (c *session) authenticate(q *request) ending {
	a, err := c.entry.Admit(q.Key)
	if err != nil {
		return c.turnAway(q.ID, err)
	}
	c.entry.leave() // what it had without a key
	c.entry.Admission = a
	c.client.On(a.Holder)
	if !c.keyBy.IsZero() {
		c.streams.named(c.entry.From)
		c.keyBy = time.Time{}
	}
	c.stop = c.entry.watch(c.keyOver)
	name := ""
	if a.Client != nil {
		name = a.Client.Name()
	}
	text, err := json.Marshal(authMessage{Type: opAuth, ID: q.ID, Client: name, SentAt: clock.WallNow().UTC().Format(time.RFC3339Nano)})
	if err != nil {
		panic(err) // strings only
	}
	c.client.Tell(text)
	return ending{}
}

// authMessage tells a client on whose account it is.
type authMessage struct {
	Type   string `json:"type"`
	ID     string `json:"id,omitempty"`
	Client string `json:"client"`
	SentAt string `json:"sent_at"`
}

// turnAway tells the client why its key was not taken and ends the connection. Nothing is queued for such a client yet, so
// the message is written past the queue: what is queued is not sent any more when a connection ends.
func (c *session) turnAway(id string, err error) ending {
	c.streams.metrics.refused.Inc()
	if e := c.frame(ws.NewTextFrame(c.streams.refuse(id, hub.Topic{}, err))); e.code != 0 {
		return e
	}
	return ending{ws.StatusPolicyViolation, "the key was not taken", endKey}
}

// unnamed is how the connection of a client ends that might have yet to send its key: the time for that is over, whatever it
// was reading.
func (c *session) unnamed(e ending) ending {
	if e == tooLong && !c.keyBy.IsZero() && !clock.Now().Before(c.keyBy) {
		return noKey
	}
	return e
}
