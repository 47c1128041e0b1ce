package api_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

// followed is a ring that follows a keys file until stop.
func followed(t *testing.T, path string) (ring *keys.Ring, stop func()) {
	t.Helper()
	ring, err := keys.Open(path, discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = ring.Run(ctx)
	}()
	return ring, func() {
		cancel()
		<-ran
	}
}

func authMessage(key string) string { return `{"op":"auth","key":"` + key + `"}` }

// TestStreamAuth_whatIsWrongHasTheCodesOfRequests.
func TestStreamAuth_whatIsWrongHasTheCodesOfRequests(t *testing.T) {
	marketKey, good := newKey(t, keys.MarketRead)
	accountKey, account := newKey(t, keys.AccountRead)
	expired, old := newKey(t, keys.MarketRead)
	expired.Expires = time.Now().Add(-time.Second)
	limited, slow := newKey(t, keys.MarketRead)
	limited.Client = "slow"
	ring := keys.FixedRing(keys.File{Keys: []keys.Key{marketKey, accountKey, expired, limited}, Clients: []keys.Client{{Name: "slow", RequestsPerSecond: 1, Streams: 1}}})
	r := newStreamRig(t, nil, func(c *api.Config) { c.Keys, c.MarketNeedsKey = ring, true })
	var refusals []string
	f := func(text, code string) {
		t.Helper()
		c, _, _ := r.dial(t)
		m := exchangeMessages(t, c, text)
		if m.Code != code || m.Type != "error" || strings.Contains(m.Detail, good) || m.Detail == "" {
			t.Errorf("%+v, want %s", m, code)
		}
		if code == "unauthenticated" && !strings.Contains(m.Detail, `{"op":"auth","key":"gw_...`) {
			t.Errorf("%q does not tell how the first message brings a key", m.Detail)
		}
		if code == "unauthenticated" {
			refusals = append(refusals, m.Detail)
		}
		_, _, err := c.Read(t.Context())
		if e, ok := errors.AsType[websocket.CloseError](err); !ok || e.Code != websocket.StatusPolicyViolation {
			t.Errorf("%s: %v", code, err)
		}
	}
	f(subscribe, "unauthenticated")
	f(authMessage(turned(good)), "unauthenticated")
	f(authMessage("gw_nosuchkey_0000000000000000000000fake"), "unauthenticated")
	f(authMessage(old), "unauthenticated")
	f(authMessage(account), "forbidden")
	for _, d := range refusals {
		if d != refusals[0] {
			t.Errorf("%q differs from %q", d, refusals[0])
		}
	}
	c, _, _ := r.dial(t)
	if err := c.Write(t.Context(), websocket.MessageText, []byte(authMessage(good))); err != nil {
		t.Fatal(err)
	}
	if _, text, err := c.Read(t.Context()); err != nil || !strings.HasPrefix(string(text), `{"type":"auth","client":"`+marketKey.ID+`",`) {
		t.Fatalf("%s %v", text, err)
	}
	if m := exchangeMessages(t, c, subscribe); m.Type != "status" {
		t.Errorf("%+v", m)
	}
	// The quota of a client is that of its streams, too.
	held, _, _ := r.dial(t)
	if m := exchangeMessages(t, held, authMessage(slow)); m.Type != "auth" {
		t.Errorf("%+v", m)
	}
	f(authMessage(slow), "client_rate_limited")
	// Wrong keys of first messages are counted with those of requests. On a slow machine a few more are looked at meanwhile.
	wrong := func() string {
		t.Helper()
		c, _, _ := r.dial(t)
		return exchangeMessages(t, c, authMessage(turned(good))).Code
	}
	const before = 3 // were wrong above
	for i := before; ; i++ {
		code := wrong()
		if code == "client_rate_limited" && i >= 20 {
			break
		}
		if code != "unauthenticated" || i > 100 {
			t.Fatalf("wrong key %d: %s", i+1, code)
		}
	}
	refused := false
	for range 3 {
		refused = refused || from("127.0.0.1:1", r.server.Public(), http.MethodGet, bookURL, "X-API-Key", turned(good)).Code == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("requests from the same address are not slowed down")
	}
	if log := r.log.String(); strings.Contains(log, good) || strings.Contains(log, turned(good)) || strings.Contains(log, old) {
		t.Errorf("the log holds a key: %s", log)
	}
}

// listBooks notes on whose behalf its list is asked for.
type listBooks struct {
	*fakeBooks
	mu    sync.Mutex
	asked []string
}

func (f *listBooks) Listing(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (market.Listing, error) {
	f.mu.Lock()
	f.asked = append(f.asked, market.ClientName(ctx))
	f.mu.Unlock()
	return f.fakeBooks.Listing(ctx, exchange, pair)
}

func (f *listBooks) clients() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// TestStreamAuth_whereNoKeyIsNeeded: it may be sent, and puts the client's questions on its account.
func TestStreamAuth_whereNoKeyIsNeeded(t *testing.T) {
	k, text := newKey(t, keys.AccountRead) // of any scope: the data are free here
	k.Client = "desk-a"
	books := &listBooks{}
	r := newStreamRig(t, nil, func(c *api.Config) {
		books.fakeBooks = c.Books.(*fakeBooks)
		c.Books, c.Keys = books, keys.NewRing(k)
	})
	c, _, _ := r.dial(t)
	if m := exchangeMessages(t, c, authMessage(text)); m.Type != "auth" {
		t.Fatalf("%+v", m)
	}
	if m := exchangeMessages(t, c, subscribe); m.Type != "status" {
		t.Errorf("%+v", m)
	}
	if got := books.clients(); len(got) != 1 || got[0] != "desk-a" {
		t.Errorf("the list was asked for by %q", got)
	}
	plain, _, _ := r.dial(t)
	exchangeMessages(t, plain, subscribe)
	if res := r.open(t, eventsURL, "X-API-Key", text); res.StatusCode != 200 {
		t.Errorf("%s", res.Status)
	}
	if got := books.clients(); len(got) != 3 || got[1] != market.Keyless || got[2] != "desk-a" {
		t.Errorf("the list was asked for by %q", got)
	}
	if got := r.feed.onAccounts(); !slices.Equal(got, []string{"desk-a", market.Keyless, "desk-a"}) {
		t.Errorf("books are streamed on the accounts of %q", got)
	}
}

// TestStreams_booksOfOneAlone: as long as there is no key, whoever uses the gateway has nobody to leave books to.
func TestStreams_booksOfOneAlone(t *testing.T) {
	r := newStreamRig(t, nil)
	c, _, _ := r.dial(t)
	exchangeMessages(t, c, subscribe)
	if res := r.open(t, eventsURL); res.StatusCode != 200 {
		t.Errorf("%s", res.Status)
	}
	if got := r.feed.onAccounts(); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("books are streamed on the accounts of %q", got)
	}
}

// TestKeyInTheQuery_isToldToBeReplaced, and nothing repeats it.
func TestKeyInTheQuery_isToldToBeReplaced(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	r := newStreamRig(t, nil, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	secret := text[strings.LastIndexByte(text, '_')+1:]
	for _, query := range []string{"key=" + text, "api_key=" + text, text + "=1", text, "symbol=" + text, "x=%67w_" + text[3:]} {
		for _, path := range []string{"/v1/stream?", "/v1/stream/orderbook?", "/v1/exchanges/okx/orderbook?", "/v1/exchanges?"} {
			w := r.get(path + query)
			if p := readProblem(t, w); w.Code != 400 || p.Code != "invalid_parameter" || !strings.Contains(p.Detail, "Replace this one") || strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s: %d %+v", path, w.Code, p)
			}
		}
	}
	if log := r.log.String(); strings.Contains(log, secret) {
		t.Errorf("the log holds it: %s", log)
	}
	if p := readProblem(t, r.get("/v1/stream?token=abc")); p.Code != "unknown_parameter" || strings.Contains(p.Detail, "abc") {
		t.Errorf("%+v", p)
	}
}

// TestRevoked_endsEveryStreamWithinTenSeconds: of a key that is removed from the file, and of one whose time is over. Those of
// other keys, and of nobody, go on.
func TestRevoked_endsEveryStreamWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys.yaml")
		add := func(client string, expires time.Time) (keys.Key, string) {
			k, text := newKey(t, keys.MarketRead, keys.OpsRead)
			k.Client, k.Expires = client, expires
			if err := keys.Append(path, k); err != nil {
				t.Fatal(err)
			}
			return k, text
		}
		revoked, gone := add("desk-a", time.Time{})
		_, short := add("desk-b", time.Now().Add(time.Hour).Truncate(time.Second))
		_, stays := add("desk-c", time.Time{})
		ring, stop := followed(t, path)
		defer stop()
		board := newFakeBoard()
		public, admin := newPipes(), newPipes()
		r := newStreamRig(t, public, func(c *api.Config) {
			c.Keys, c.Board, c.Desk, c.AdminOnLoopback = ring, board, &fakeDesk{}, true
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
		open := func(p *pipes, target, headers string) *held {
			return hold(t, p, "GET "+target+" HTTP/1.1\r\nHost: "+adminHost+"\r\n"+headers+"\r\n")
		}
		webSocket := func(headers string) *held {
			return hold(t, public, "GET /v1/stream HTTP/1.1\r\nHost: "+adminHost+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
				"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"+headers+"\r\n")
		}
		login := func(key string) string {
			req := "POST /admin/v1/session HTTP/1.1\r\nHost: " + adminHost + "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
			body := `{"key":"` + key + `"}`
			h := hold(t, admin, req+strconv.Itoa(len(body))+"\r\n\r\n"+body)
			<-h.over
			_, line, _ := strings.Cut(h.text(), "Set-Cookie: ")
			cookie, _, _ := strings.Cut(line, ";")
			return "Cookie: " + cookie + "\r\n"
		}
		with := func(key string) string { return "X-API-Key: " + key + "\r\n" }
		type streams struct{ all []*held }
		of := func(key string) streams {
			return streams{[]*held{
				webSocket(with(key)), open(public, eventsURL, with(key)), open(public, "/v1/circuits/events", with(key)),
				open(admin, "/v1/circuits/events", login(key)),
			}}
		}
		a, b, c := of(gone), of(short), of(stays)
		nobody := streams{[]*held{webSocket(""), open(public, eventsURL, "")}}
		loggedOut := login(stays)
		d := streams{[]*held{open(admin, "/v1/circuits/events", loggedOut)}}
		synctest.Wait()
		over := func(s streams, name string, want bool) {
			t.Helper()
			for i, h := range s.all {
				select {
				case <-h.over:
					if !want {
						t.Errorf("%s: stream %d has ended: %s", name, i, h.text())
					} else if !strings.Contains(h.text(), "the key is no longer valid") || !h.webSocket && !strings.Contains(h.text(), "event: close\n") {
						t.Errorf("%s: stream %d ended without a word: %q", name, i, h.text())
					}
				default:
					if want {
						t.Errorf("%s: stream %d goes on: %q", name, i, h.text())
					}
				}
			}
		}
		time.Sleep(time.Minute) // fake clock
		over(a, "revoked", false)
		if _, err := keys.Revoke(path, revoked.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		over(a, "revoked", true)
		over(b, "short", false)
		over(c, "stays", false)
		if w := r.get(bookURL, "X-API-Key", gone); w.Code != 401 {
			t.Errorf("a request: %d", w.Code)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		over(b, "expired", true)
		over(c, "stays", false)
		over(nobody, "nobody's", false)
		// A session that is ended ends what it opened, too; the key's own go on.
		out := hold(t, admin, "POST /admin/v1/session/end HTTP/1.1\r\nHost: "+adminHost+"\r\nContent-Length: 0\r\nConnection: close\r\n"+loggedOut+"\r\n")
		<-out.over
		time.Sleep(9 * time.Second)
		synctest.Wait()
		over(d, "logged out", true)
		over(c, "stays", false)
		for transport, want := range map[string]float64{"websocket": 2, "sse": 2} {
			if got := metric(t, r.registry, "gateway_stream_clients_ended_total", "transport", transport, "end", "key"); got != want {
				t.Errorf("%s ended for their key: %v, want %v", transport, got, want)
			}
		}
		if got := metric(t, r.registry, "gateway_ops_watchers_ended_total", "end", "key"); got != 5 {
			t.Errorf("watches ended for their key: %v", got)
		}
		for _, s := range []streams{c, nobody} {
			for _, h := range s.all {
				_ = h.conn.Close()
			}
		}
		synctest.Wait()
	})
}

// held is a connection whose answer is read as it comes.
type held struct {
	conn net.Conn
	over chan struct{} // closed when nothing more comes
	read *safeBuffer

	webSocket bool
}

// hold sends a request and reads until the connection ends, or says that it does.
func hold(t *testing.T, p *pipes, request string) *held {
	t.Helper()
	h := &held{conn: p.dial(), over: make(chan struct{}), read: &safeBuffer{}, webSocket: strings.Contains(request, "Upgrade: websocket")}
	t.Cleanup(func() { _ = h.conn.Close() })
	go func() {
		defer close(h.over)
		in := bufio.NewReader(h.conn)
		buf := make([]byte, 4096)
		for {
			n, err := in.Read(buf)
			_, _ = h.read.Write(buf[:n])
			if err != nil || strings.HasSuffix(h.text(), "\r\n0\r\n\r\n") {
				return
			}
		}
	}()
	if _, err := io.WriteString(h.conn, request); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *held) text() string { return h.read.String() }
