package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/ops"
)

// adminHost is how an operator's browser calls the gateway on its own machine.
const adminHost = "localhost:8081"

// fakeDesk carries nothing out and counts what it was asked.
type fakeDesk struct {
	mu     sync.Mutex
	orders []ops.Order
	out    ops.Outcome
	err    error
	do     func(context.Context)
}

func (f *fakeDesk) Do(ctx context.Context, o ops.Order) (ops.Outcome, error) {
	f.mu.Lock()
	f.orders = append(f.orders, o)
	f.mu.Unlock()
	if f.do != nil {
		f.do(ctx)
	}
	out := f.out
	out.Verb = o.Verb
	return out, f.err
}

func (f *fakeDesk) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.orders)
}

// last is the newest order; the zero order if there was none.
func (f *fakeDesk) last() ops.Order {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.orders) == 0 {
		return ops.Order{}
	}
	return f.orders[len(f.orders)-1]
}

// deskRig is a rig with a desk, a board, and a key of each scope; or with no key.
type deskRig struct {
	*rig
	desk  *fakeDesk
	board *fakeBoard
	keys  map[string]string // the text of the key with a scope
}

func newDeskRig(t testing.TB, change ...func(*api.Config)) *deskRig {
	t.Helper()
	r := &deskRig{desk: &fakeDesk{}, board: newFakeBoard(), keys: map[string]string{}}
	var all []keys.Key
	for _, scope := range []string{keys.OpsWrite, keys.OpsRead, keys.MarketRead, keys.AccountRead} {
		k, text := newKey(t, scope)
		all = append(all, k)
		r.keys[scope] = text
	}
	r.rig = newRig(t, append([]func(*api.Config){func(c *api.Config) {
		c.Desk, c.Board, c.AdminOnLoopback, c.Keys = r.desk, r.board, true, keys.NewRing(all...)
	}}, change...)...)
	return r
}

// keyless takes the keys away.
func keyless(c *api.Config) { c.Keys = keys.NewRing() }

// post orders something on the admin listener, as JSON unless the headers say otherwise; headers are name, value pairs.
func (r *deskRig) post(path, body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/admin/v1/"+path, strings.NewReader(body))
	req.Host = adminHost
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return serve(r.server.Admin(), req)
}

// see asks the admin listener.
func (r *deskRig) see(target string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	req.Host = adminHost
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return serve(r.server.Admin(), req)
}

// login swaps a key for a cookie, as a browser sends it.
func (r *deskRig) login(t testing.TB, key string) (cookie string) {
	t.Helper()
	w := r.post("session", `{"key":"`+key+`"}`)
	if w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	return c.Name + "=" + c.Value
}

// fakeBoard shows what a test tells it.
type fakeBoard struct {
	mu       sync.Mutex
	watches  []*fakeWatcher
	lastIDs  []string
	err      error
	closed   []string
	snapshot string
}

func newFakeBoard() *fakeBoard {
	o := fullOverview()
	o.Instance, o.Headline = "test", strings.Repeat("x", 2000)
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has nothing that JSON cannot say
	}
	return &fakeBoard{snapshot: string(text)}
}

func (b *fakeBoard) Snapshot() []byte { return []byte(b.snapshot) }

func (b *fakeBoard) Watch(lastID string) (api.Watcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastIDs = append(b.lastIDs, lastID)
	if b.err != nil {
		return nil, b.err
	}
	w := &fakeWatcher{frames: make(chan []byte, 4), ended: make(chan error, 1), gone: make(chan struct{})}
	w.frames <- []byte("retry: 1000\n\n")
	b.watches = append(b.watches, w)
	return w, nil
}

func (b *fakeBoard) Close(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = append(b.closed, reason)
	for _, w := range b.watches {
		w.say("event: bye\ndata: {\"reason\":\"" + reason + "\"}\n\n")
		w.end(errBoardClosed)
	}
}

func (b *fakeBoard) watch(i int) *fakeWatcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i >= len(b.watches) {
		return nil
	}
	return b.watches[i]
}

// fakeWatcher gives the frames of a test, then its error.
type fakeWatcher struct {
	frames chan []byte
	ended  chan error
	gone   chan struct{} // closed by Close

	attended atomic.Bool
}

func (w *fakeWatcher) Attend() { w.attended.Store(true) }

func (w *fakeWatcher) say(frame string) {
	select {
	case w.frames <- []byte(frame):
	case <-w.gone:
	}
}

func (w *fakeWatcher) end(err error) {
	select {
	case w.ended <- err:
	default:
	}
}

func (w *fakeWatcher) Next(ctx context.Context) ([]byte, error) {
	select {
	case f := <-w.frames:
		return f, nil
	default:
	}
	select {
	case f := <-w.frames:
		return f, nil
	case err := <-w.ended:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *fakeWatcher) Close() { close(w.gone) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
