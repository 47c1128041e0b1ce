package api_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api"
)

// TestWire_aBodyThatDoesNotComeHoldsNoPlace: net/http reads what is left of a body before it writes an answer of over 2 KB. A
// client that announces one and does not send it waited for that in the middle of its request, and held its place.
func TestWire_aBodyThatDoesNotComeHoldsNoPlace(t *testing.T) {
	addr := newRig(t, func(c *api.Config) { c.MaxInFlight = 1 }).listen(t)
	for _, head := range []string{"Content-Length: 100\r\n\r\n", "Content-Length: 100\r\n\r\nhalf of it", "Transfer-Encoding: chunked\r\n\r\n64\r\n"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /v1/errors HTTP/1.1\r\nHost: x\r\n"+head); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing tells when they have arrived; within a tenth of a second they have, and one would be enough.
	for range 20 {
		res, err := http.Get("http://" + addr + "/v1/errors")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close() // the status is all that matters
		if res.StatusCode != http.StatusOK {
			t.Fatalf("another client got %d", res.StatusCode)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestWire_chunksEndTheirConnection: what follows a request that has both a length and chunks could be another request to
// whoever went by the other (RFC 9112 section 6.1).
func TestWire_chunksEndTheirConnection(t *testing.T) {
	addr := newRig(t).listen(t)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const both = "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	if _, err := io.WriteString(c, both+"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || strings.Count(string(text), "HTTP/1.1 ") != 1 || !strings.Contains(string(text), "Connection: close") {
		t.Errorf("%v, want one answer and the end: %s", err, text)
	}
}
