package stream_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/stream"
)

// logged is a log that several goroutines write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// lines are what was logged, without the time.
func (l *logged) lines() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, rest)
	}
	return out
}

// Clients that the gateway closes are logged with why, once a second for each reason; those that leave are not.
func TestFarewell_isLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &logged{}
		p := newPipes()
		serve(t, p, func(c *stream.Config) { c.Log = slog.New(slog.NewTextHandler(l, nil)) })
		f := func(n int, frames ...[]byte) {
			t.Helper()
			for range n {
				c := upgrade(t, p.dial())
				c.put(frames...)
				if op, _, err := c.frame(); op != opClose || err != nil {
					t.Fatal(op, err)
				}
				_ = c.Close() // without it the gateway waits for that
			}
			synctest.Wait()
		}
		f(3, masked(fin|opBinary, ""))
		f(2, masked(fin|opText, "\xff"))
		f(5, masked(fin|opClose, "\x03\xe8"))
		time.Sleep(time.Second)
		f(2, masked(fin|opBinary, ""))
		time.Sleep(time.Hour)
		c := upgrade(t, p.dial())
		for _, text := range []string{subscribeTo(5), subscribeTo(20), strings.Replace(subscribeTo(5), "subscribe", "unsubscribe", 1)} {
			c.put(masked(fin|opText, text))
			for op, payload, err := c.frame(); !bytes.Contains(payload, []byte("snapshot")) && !bytes.Contains(payload, []byte("unsubscribed")); op, payload, err = c.frame() {
				if err != nil || op != opText {
					t.Fatal(op, err)
				}
			}
		}
		c.put(masked(fin|opBinary, ""))
		c.closed()
		_ = c.Close()
		synctest.Wait()
		line := func(code, subscriptions int, reason, more string) string {
			return `level=INFO msg="stream client closed" transport=websocket reason="` + reason + `" subscriptions=` + strconv.Itoa(subscriptions) +
				` code=` + strconv.Itoa(code) + more
		}
		want := []string{
			line(1003, 0, "messages are text", ""),
			line(1007, 0, "a text message is not UTF-8", ""),
			line(1003, 0, "messages are text", " omitted=2"),
			line(1003, 1, "messages are text", " omitted=1"),
		}
		if got := l.lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
