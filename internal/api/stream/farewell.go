package stream

import (
	"log/slog"
	"sync"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/internal/clock"
)

// farewell is a client that the gateway closed. Nothing of it is the client's own: neither its address nor its words.
type farewell struct {
	transport     string
	code          ws.StatusCode // 0 for events, which end without one
	reason        string        // one of a closed set
	subscriptions int
}

// farewellEvery is how often one reason is logged: a flood of clients is a line a second, and the metric has all of them.
const farewellEvery = time.Second

// farewells log why clients were closed.
type farewells struct {
	mu    sync.Mutex
	lines map[string]farewellLine // by transport and reason: a dozen at most
}

type farewellLine struct {
	at       time.Time
	unlogged int // clients since
}

// log writes a line, unless one of the same reason was written within farewellEvery: then the next line counts this client.
func (f *farewells) log(to *slog.Logger, b farewell) {
	unlogged, ok := f.due(b.transport+" "+b.reason, clock.Now())
	if !ok {
		return
	}
	attrs := []any{slog.String("transport", b.transport), slog.String("reason", b.reason), slog.Int("subscriptions", b.subscriptions)}
	if b.code != 0 {
		attrs = append(attrs, slog.Int("code", int(b.code)))
	}
	if unlogged > 0 {
		attrs = append(attrs, slog.Int("omitted", unlogged))
	}
	to.Info("stream client closed", attrs...)
}

func (f *farewells) due(name string, now time.Time) (unlogged int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lines[name]
	if !l.at.IsZero() && now.Sub(l.at) < farewellEvery {
		l.unlogged++
		f.lines[name] = l
		return 0, false
	}
	if f.lines == nil {
		f.lines = map[string]farewellLine{}
	}
	f.lines[name] = farewellLine{at: now}
	return l.unlogged, true
}
