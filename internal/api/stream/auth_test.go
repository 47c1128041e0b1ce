package stream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/market"
)

const goodKey, wrongKey = "gw_good1234_0000000000000000000000fake", "gw_good1234_1111111111111111111111fake"

// fakeClient is whose key goodKey is.
type fakeClient struct{}

func (fakeClient) Name() string                  { return "desk-a" }
func (fakeClient) Afford() (time.Duration, bool) { return 0, true }
func (fakeClient) Spend(int)                     {}

// door lets in who has goodKey, and revokes it. It counts.
type door struct {
	mu     sync.Mutex
	tried  []string
	ends   map[int]func()
	next   int
	inside atomic.Int32
	left   atomic.Int32
	freed  atomic.Int32 // who was let in without a key and is gone, or has one now
}

func newDoor() *door { return &door{ends: map[int]func(){}} }

func (d *door) admission() stream.Admission {
	d.inside.Add(1)
	return stream.Admission{Client: fakeClient{}, Watch: d.watch, Leave: func() { d.left.Add(1) }}
}

func (d *door) admit(key string) (stream.Admission, error) {
	d.mu.Lock()
	d.tried = append(d.tried, key)
	d.mu.Unlock()
	if key != goodKey {
		return stream.Admission{}, errors.New("no such key")
	}
	return d.admission(), nil
}

func (d *door) watch(end func()) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.next
	d.next++
	d.ends[id] = end
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.ends, id)
	}
}

// revoke ends everything that was let in.
func (d *door) revoke() {
	d.mu.Lock()
	var all []func()
	for _, end := range d.ends {
		all = append(all, end)
	}
	d.mu.Unlock()
	for _, end := range all {
		end()
	}
}

// keyed is a rig whose clients need a key: in the header X-Key, or in the first message.
func keyed(t *testing.T, d *door, change ...func(*stream.Config)) *rig {
	t.Helper()
	r := newRig(t, change...)
	r.entry = func(q *http.Request) stream.Entry {
		switch q.Header.Get("X-Key") {
		case "":
			return stream.Entry{NeedsKey: true, Admit: d.admit}
		case "free":
			return stream.Entry{Admission: stream.Admission{Client: fakeClient{}, Leave: func() { d.freed.Add(1) }}, Admit: d.admit}
		}
		return stream.Entry{Admission: d.admission()}
	}
	return r
}

func (r *rig) dialWith(t *testing.T, key string) *client {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "ws://"+r.addr+"/v1/stream", &websocket.DialOptions{HTTPHeader: http.Header{"X-Key": {key}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return &client{c, t}
}

func auth(key string) string { return `{"op":"auth","key":"` + key + `","id":"k"}` }

func TestAuth_aKeyInTheFirstMessage(t *testing.T) {
	d := newDoor()
	var under []string
	r := keyed(t, d, func(c *stream.Config) {
		c.Listing = func(ctx context.Context, e market.ExchangeID, p market.Pair) (market.Listing, error) {
			under = append(under, market.ClientName(ctx))
			return listing(ctx, e, p)
		}
	})
	for i, key := range []string{"", "free"} {
		c := r.dialWith(t, key)
		c.send(auth(goodKey))
		if m := c.expect("auth")[0]; m.ID == nil || *m.ID != "k" || m.Client != "desk-a" || m.SentAt.IsZero() {
			t.Errorf("%q: %+v", key, m)
		}
		if got := d.freed.Load(); got != int32(i) {
			t.Errorf("%q: what it had without a key was given back %d times", key, got)
		}
		c.send(subscribeTo(5))
		c.expect("status live", "snapshot")
		// A second one is a mistake, and no more than that.
		c.send(auth(goodKey))
		if m := c.expect("error")[0]; m.Code != "invalid_parameter" || m.Field != "op" {
			t.Errorf("%q: %+v", key, m)
		}
		c.send(`{"op":"ping"}`)
		c.expect("heartbeat")
		if d.inside.Load() != int32(i+1) || len(d.tried) != i+1 {
			t.Errorf("%d let in, tried %d", d.inside.Load(), len(d.tried))
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
		until(t, "it has left", func() bool { return d.left.Load() == int32(i+1) })
	}
	if got := strings.Join(under, ","); got != "desk-a,desk-a" {
		t.Errorf("lists were asked for by %q", got)
	}
	if got := d.freed.Load(); got != 1 {
		t.Errorf("what one had without a key was given back %d times", got)
	}
	if len(d.ends) != 0 {
		t.Errorf("%d keys are watched for nobody", len(d.ends))
	}
}

// TestAuth_whoNeedsAKeyBringsItFirst: anything else, or a wrong key, is answered and ends the connection.
func TestAuth_whoNeedsAKeyBringsItFirst(t *testing.T) {
	d := newDoor()
	r := keyed(t, d)
	f := func(key, text, code, field string) {
		t.Helper()
		c := r.dialWith(t, key)
		c.send(text)
		m := c.read()
		if m.Type != "error" || m.Code != code || m.Field != field || m.Detail == "" || strings.Contains(m.Detail, "gw_good1234") {
			t.Errorf("%s: %+v", text, m)
		}
		if status, reason := c.closed(); status != websocket.StatusPolicyViolation || reason != "the key was not taken" {
			t.Errorf("%s: closed with %d %q", text, status, reason)
		}
	}
	f("", subscribeTo(5), "fake", "")
	f("", `{"op":"ping"}`, "fake", "")
	f("", auth(wrongKey), "fake", "")
	f("", `{"op":"auth"}`, "invalid_parameter", "key")
	f("", `{"op":"auth","key":7}`, "invalid_parameter", "key")
	f("", `{"op":"auth","key":"`+goodKey+`","depth":5}`, "invalid_parameter", "op")
	f("", `{"op":"subscribe","key":"`+goodKey+`","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"]}`, "invalid_parameter", "key")
	f("", `{"op":"auth","key":"`+goodKey+`"`, "invalid_parameter", "")
	f("free", auth(wrongKey), "fake", "") // whoever mistypes one must not believe that it is used
	if watched, _ := r.feed.counts(); watched != 0 || d.inside.Load() != 0 {
		t.Errorf("%d subscriptions, %d let in", watched, d.inside.Load())
	}
	until(t, "all are counted", func() bool { return r.ended("websocket", "key") == 9 })
}

// TestAuth_notWhereItIsNotAsked: after another message, or beside the key of a header, auth is an error and nothing more.
func TestAuth_notWhereItIsNotAsked(t *testing.T) {
	d := newDoor()
	r := keyed(t, d)
	for _, key := range []string{"free", goodKey} {
		c := r.dialWith(t, key)
		c.send(`{"op":"ping"}`)
		c.expect("heartbeat")
		c.send(auth(goodKey))
		if m := c.expect("error")[0]; m.Code != "invalid_parameter" || m.Field != "op" || m.ID == nil {
			t.Errorf("%q: %+v", key, m)
		}
		c.send(subscribeTo(5))
		c.expect("status live", "snapshot")
	}
	if len(d.tried) != 0 {
		t.Errorf("tried %q", d.tried)
	}
}

// TestAuth_withinFiveSeconds: who sends no key in time is closed, whatever else it sends.
func TestAuth_withinFiveSeconds(t *testing.T) {
	f := func(name string, keep func(i int) []byte) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p := newPipes()
			d := newDoor()
			r := serve(t, p)
			r.entry = func(*http.Request) stream.Entry { return stream.Entry{NeedsKey: true, Admit: d.admit} }
			c := upgrade(t, p.dial())
			began := time.Now()
			gone := make(chan struct{})
			go func() {
				for i := 0; ; i++ {
					select {
					case <-gone:
						return
					case <-time.After(400 * time.Millisecond):
						_, _ = c.Write(keep(i))
					}
				}
			}()
			code, reason := c.closed()
			if took := time.Since(began); code != 1008 || reason != "no valid key came within 5 s" || took < 5*time.Second || took > 6*time.Second { // with the time to hang up
				t.Errorf("%s: closed with %d %q after %v", name, code, reason, took)
			}
			close(gone)
			_ = c.Close()
			synctest.Wait()
			if n := r.ended("websocket", "key"); n != 1 {
				t.Errorf("%s: %d ended for their key", name, n)
			}
		})
	}
	f("silence", func(int) []byte { return nil })
	f("pings", func(int) []byte { return masked(fin|opPing, "x") })
	f("parts of a message", func(i int) []byte {
		if i == 0 {
			return masked(opText, "{")
		}
		return masked(opContinue, " ")
	})
}

// TestAuth_fewMayBeWithoutTheirKey at once; those that have sent it, and those that are gone, make room.
func TestAuth_fewMayBeWithoutTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		d := newDoor()
		r := serve(t, p)
		r.entry = func(*http.Request) stream.Entry { return stream.Entry{NeedsKey: true, Admit: d.admit} }
		var all []*rawClient
		for range stream.MaxUnnamed {
			all = append(all, upgrade(t, p.dial()))
		}
		refused := func() bool {
			conn := p.dial()
			defer conn.Close()
			_, _ = io.WriteString(conn, handshake)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode == http.StatusTeapot
		}
		if !refused() {
			t.Error("one more was let in")
		}
		all[0].put(masked(fin|opText, auth(goodKey)))
		if op, payload, err := all[0].frame(); err != nil || op != opText || !strings.Contains(string(payload), `"type":"auth"`) {
			t.Fatalf("%d %s %v", op, payload, err)
		}
		if refused() {
			t.Error("there is no room for one more")
		}
		synctest.Wait()
		for _, c := range all[1:] {
			_ = c.Close()
		}
		synctest.Wait()
		if n := r.clients("websocket"); n != 1 {
			t.Errorf("%d are connected", n)
		}
		go func() { // it reads, and so it stays
			for {
				if op, _, err := all[0].frame(); op == opClose || err != nil {
					_ = all[0].Close()
					return
				}
			}
		}()
		time.Sleep(time.Minute) // fake clock
		synctest.Wait()
		if n := r.clients("websocket"); n != 1 {
			t.Errorf("%d are connected after a minute", n)
		}
	})
}

// TestAuth_fewOfOneNetworkMayBeWithoutTheirKey, so that one network shuts no other out.
func TestAuth_fewOfOneNetworkMayBeWithoutTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		d := newDoor()
		r := serve(t, p)
		here, there := netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8:1:2::")
		from, needs := here, true
		r.entry = func(*http.Request) stream.Entry { return stream.Entry{NeedsKey: needs, From: from, Admit: d.admit} }
		var all []*rawClient
		for range stream.MaxUnnamedFrom {
			all = append(all, upgrade(t, p.dial()))
		}
		refused := func() bool {
			conn := p.dial()
			_, _ = io.WriteString(conn, handshake)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			synctest.Wait()
			return res.StatusCode == http.StatusTeapot
		}
		if !refused() {
			t.Error("one more of the network was let in")
		}
		from = there
		if refused() {
			t.Error("another network is shut out")
		}
		from, needs = here, false
		if refused() {
			t.Error("one that needs to send no key is shut out")
		}
		needs = true
		all[0].put(masked(fin|opText, auth(goodKey)))
		if op, payload, err := all[0].frame(); err != nil || op != opText || !strings.Contains(string(payload), `"type":"auth"`) {
			t.Fatalf("%d %s %v", op, payload, err)
		}
		if refused() {
			t.Error("the one that sent its key makes no room")
		}
		for range 3 { // each of them has gone
			if refused() {
				t.Error("those that are gone make no room")
			}
		}
		for _, c := range all {
			_ = c.Close()
		}
		synctest.Wait()
		if n := r.clients("websocket"); n != 0 {
			t.Errorf("%d are connected", n)
		}
		for range stream.MaxUnnamedFrom {
			all = append(all, upgrade(t, p.dial()))
		}
		if !refused() {
			t.Error("those that sent their key are still counted as gone")
		}
		for _, c := range all {
			_ = c.Close()
		}
	})
}

// TestKeyOver_endsWhatItOpened, on either transport, and nothing of others.
func TestKeyOver_endsWhatItOpened(t *testing.T) {
	d := newDoor()
	r := keyed(t, d)
	byHeader, byMessage, other := r.dialWith(t, goodKey), r.dialWith(t, ""), r.dialWith(t, "free")
	byMessage.send(auth(goodKey))
	byMessage.expect("auth")
	for _, c := range []*client{byHeader, byMessage, other} {
		c.send(subscribeTo(5))
		c.expect("status live", "snapshot")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/events?depth=5", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Key", goodKey)
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	until(t, "the events are served", func() bool { return r.clients("sse") == 1 })
	d.revoke()
	for _, c := range []*client{byHeader, byMessage} {
		if code, reason := c.closed(); code != websocket.StatusPolicyViolation || reason != "the key is no longer valid" {
			t.Errorf("closed with %d %q", code, reason)
		}
	}
	in := events(t, res)
	var last event
	for e, ok := in.next(); ok; e, ok = in.next() {
		last = e
	}
	if last.kind != "close" || last.data != `{"type":"close","reason":"the key is no longer valid"}` {
		t.Errorf("the last event: %+v", last)
	}
	other.send(`{"op":"ping"}`)
	other.expect("heartbeat")
	until(t, "all have left", func() bool { return d.left.Load() == 3 })
	if ws, sse := r.ended("websocket", "key"), r.ended("sse", "key"); ws != 2 || sse != 1 {
		t.Errorf("ended: %d and %d", ws, sse)
	}
}
