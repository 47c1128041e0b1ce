package api_test

import (
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

// TestLastUse_ofWhatIsOpen: a key is in use for as long as something is open that it opened, in whatever way, though it was
// sent once, hours ago; and not afterwards.
func TestLastUse_ofWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys.yaml")
		add := func() (id, text string) {
			k, text := newKey(t, keys.MarketRead, keys.OpsRead)
			if err := keys.Append(path, k); err != nil {
				t.Fatal(err)
			}
			return k.ID, text
		}
		type way struct {
			name, id, text string
			open           func(text string) *held
		}
		public, admin := newPipes(), newPipes()
		ask := func(p *pipes, head string) *held { return hold(t, p, head+"\r\nHost: "+adminHost+"\r\n\r\n") }
		const upgrade = "GET /v1/stream HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13"
		login := func(key string) (cookie string) {
			body := `{"key":"` + key + `"}`
			h := hold(t, admin, "POST /admin/v1/session HTTP/1.1\r\nHost: "+adminHost+"\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "+
				strconv.Itoa(len(body))+"\r\n\r\n"+body)
			<-h.over
			_, line, _ := strings.Cut(h.text(), "Set-Cookie: ")
			cookie, _, _ = strings.Cut(line, ";")
			return cookie
		}
		ways := []*way{
			{name: "WebSocket, header", open: func(key string) *held { return ask(public, upgrade+"\r\nX-API-Key: "+key) }},
			{name: "WebSocket, first message", open: func(key string) *held {
				h := ask(public, upgrade)
				synctest.Wait() // the answer to the handshake is here
				text := []byte(authMessage(key))
				mask := []byte{0, 0, 0, 0}
				frame := append([]byte{0x81, 0x80 | byte(len(text))}, mask...)
				if _, err := h.conn.Write(append(frame, text...)); err != nil {
					t.Fatal(err)
				}
				return h
			}},
			{name: "events", open: func(key string) *held { return ask(public, "GET "+eventsURL+" HTTP/1.1\r\nX-API-Key: "+key) }},
			{name: "circuits", open: func(key string) *held { return ask(public, "GET /v1/circuits/events HTTP/1.1\r\nX-API-Key: "+key) }},
			{name: "session", open: func(key string) *held {
				return ask(admin, "GET /v1/circuits/events HTTP/1.1\r\nCookie: "+login(key))
			}},
		}
		for _, w := range ways {
			w.id, w.text = add()
		}
		ring, stop := followed(t, path)
		defer stop()
		r := newStreamRig(t, public, func(c *api.Config) {
			c.Keys, c.Board, c.Desk, c.AdminOnLoopback = ring, newFakeBoard(), &fakeDesk{}, true
		})
		srv := r.server.HTTPServer(r.server.Admin())
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = srv.Serve(admin)
		}()
		defer func() {
			_ = srv.Close()
			<-served
		}()
		used := func() map[string]time.Time {
			t.Helper()
			uses, err := keys.LastUses(path)
			if err != nil {
				t.Fatal(err)
			}
			return uses
		}
		open := make([]*held, len(ways))
		for i, w := range ways {
			open[i] = w.open(w.text)
		}
		time.Sleep(3 * time.Hour) // fake clock
		synctest.Wait()
		for i, w := range ways {
			if age := time.Since(used()[w.id]); age > time.Minute+time.Second {
				t.Errorf("%s: last used %v ago, and it is open: %q", w.name, age, open[i].text())
			}
		}
		for _, h := range open {
			_ = h.conn.Close()
		}
		synctest.Wait()
		// Those of events find out when they next write.
		time.Sleep(30 * time.Minute)
		closed := time.Now()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		for _, w := range ways {
			if at := used()[w.id]; at.After(closed) {
				t.Errorf("%s: used %v after it was closed", w.name, at.Sub(closed))
			}
		}
	})
}

// TestLastUse_ofASession: a page that asks again and again with its session uses the key of it.
func TestLastUse_ofASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, text := newKey(t, keys.OpsRead)
		ring := keys.NewRing(k)
		r := newDeskRig(t, func(c *api.Config) { c.Keys = ring })
		cookie := r.login(t, text)
		time.Sleep(time.Hour)
		if w := r.see("/v1/circuits", "Cookie", cookie); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if of, _ := ring.Find(k.ID); time.Since(of.LastUse()) > time.Second {
			t.Errorf("last used %v ago", time.Since(of.LastUse()))
		}
	})
}

// TestGuessing_aKeyThatHoldsAStream: what goes on working from an address that is slowed down is also a key that was sent
// there long ago, and holds a stream open since.
func TestGuessing_aKeyThatHoldsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, text := newKey(t, keys.MarketRead)
		ring := keys.NewRing(k)
		r := newRig(t, func(c *api.Config) { c.Keys, c.MarketNeedsKey = ring, true })
		const here = "192.0.2.1:5000"
		ask := func(key string) int {
			return from(here, r.server.Public(), "GET", bookURL, "X-API-Key", key).Code
		}
		of, _ := ring.Find(k.ID)
		done := of.Hold(netip.MustParseAddr("192.0.2.1"))
		time.Sleep(2 * time.Hour)
		for range 30 {
			ask(turned(text))
		}
		if code := ask(turned(text)); code != 429 {
			t.Fatalf("not slowed down: %d", code)
		}
		if code := ask(text); code != 200 {
			t.Errorf("while a stream is open: %d", code)
		}
		done()
	})
}
