package stream

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// listen opens a client of server-sent events of one book. It ends with the test, or by close.
func (s *stage) listen(of topic) *client {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	target := fmt.Sprintf("http://localhost/v1/stream/orderbook?exchange=%s&symbol=%s&depth=%d", of.id, url.QueryEscape(of.pair), of.depth)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("events: status %d", res.StatusCode)
	}
	c := s.newClient(cancel)
	c.topics[of] = &held{status: "none"}
	go func() {
		defer close(c.done)
		defer res.Body.Close()
		c.events(bufio.NewScanner(res.Body))
	}()
	return c
}

// events takes one event after the other, each of which names its version.
func (c *client) events(lines *bufio.Scanner) {
	lines.Buffer(nil, 1<<20)
	id := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			c.mu.Lock()
			c.take([]byte(value))
			c.named(id)
			c.mu.Unlock()
			id = ""
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = lines.Err()
}

// named checks the id of an event against what is held after it.
func (c *client) named(id string) {
	for _, h := range c.topics {
		if want := fmt.Sprintf("%s-%d", h.epoch, h.seq); id != "" && id != want {
			c.fail("the event's id is %q, the version %q", id, want)
		}
	}
}
