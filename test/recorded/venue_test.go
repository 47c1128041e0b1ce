package recorded

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// patience is how long anything may take that has to happen: far more than it takes, since machines are shared.
const patience = 30 * time.Second

// await waits for something that happens on the other side of a socket.
func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// venue is a scripted exchange on a loopback socket. It answers handshakes and requests as its dialect has it, and says
// what a test plays; nothing else.
type venue struct {
	t       *testing.T
	dialect *dialect
	server  *httptest.Server
	peers   chan *peer
	readers sync.WaitGroup

	mu    sync.Mutex
	mute  bool                       // subscriptions are not answered: the recording has the answers
	rest  func(symbol string) string // the body of an answer about a book
	held  chan struct{}              // answers by REST wait until it is closed
	asked map[string]int             // books asked for by REST
	dials int
	all   []*peer
}

// maxDials is more connections than any test has use for; one more is a connection that is not wanted.
const maxDials = 8

func newVenue(t *testing.T, d *dialect) *venue {
	t.Helper()
	v := &venue{t: t, dialect: d, peers: make(chan *peer, maxDials), asked: make(map[string]int)}
	v.rest = func(symbol string) string {
		t.Errorf("%s was asked for by REST", symbol)
		return "{}"
	}
	mux := http.NewServeMux()
	mux.HandleFunc(d.streamPath, v.accept)
	mux.HandleFunc(d.restPath, v.answer)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked for", r.URL.Path)
		http.NotFound(w, r)
	})
	v.server = httptest.NewServer(mux)
	t.Cleanup(v.close)
	return v
}

func (v *venue) close() {
	v.release()
	v.server.Close()
	v.mu.Lock()
	all := v.all
	v.mu.Unlock()
	for _, p := range all {
		p.close()
	}
	v.readers.Wait()
}

func (v *venue) accept(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		v.t.Errorf("handshake: %v", err)
		return
	}
	p := &peer{venue: v, conn: conn, gone: make(chan struct{}), pongs: make(chan int, 1)}
	v.mu.Lock()
	v.dials++
	v.all = append(v.all, p)
	v.mu.Unlock()
	select {
	case v.peers <- p:
		v.readers.Go(p.read)
	default:
		v.t.Errorf("more than %d connections", maxDials)
		p.close()
	}
}

// dialled is the next connection.
func (v *venue) dialled(t *testing.T) *peer {
	t.Helper()
	select {
	case p := <-v.peers:
		return p
	case <-time.After(patience):
		t.Fatalf("no connection within %v", patience)
		return nil
	}
}

func (v *venue) dialCount() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dials
}

// comparisonDepth is up to how many levels the feed asks for to compare, now and then.
const comparisonDepth = 100

// answer serves a book by REST as it is at the moment of the answer. Questions of the feed that are none of the procedure's,
// which come after half a minute, and so on a slow machine alone, learn nothing.
func (v *venue) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if depth, err := strconv.Atoi(q.Get("limit") + q.Get("sz")); err == nil && depth <= comparisonDepth { // an exchange knows one of the two
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	symbol := q.Get(v.dialect.restKey)
	v.mu.Lock()
	v.asked[symbol]++
	held := v.held
	v.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	v.mu.Lock()
	rest := v.rest
	v.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, rest(symbol)) // who asked may have gone
}

// silent leaves subscriptions unanswered, or no longer.
func (v *venue) silent(mute bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mute = mute
}

// hold keeps answers by REST back until release.
func (v *venue) hold() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = make(chan struct{})
}

func (v *venue) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held != nil {
		close(v.held)
		v.held = nil
	}
}

func (v *venue) answers(rest func(symbol string) string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rest = rest
}

// askedFor is how often a book was asked for by REST.
func (v *venue) askedFor(symbol string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[symbol]
}
