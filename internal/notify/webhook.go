package notify

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// maxQueued bounds what waits to be told. Who comes back to more than 200 news reads the dashboard instead; the oldest are
// given up, and the next message says how many.
const maxQueued = 200

// Config is where messages go, and what stands in them.
type Config struct {
	URL       market.Secret         // zero: nobody is told, and the metrics are there all the same
	Instance  string                // this gateway's name, which begins each message
	Dashboard string                // a link that ends each message, "" for none
	Client    *http.Client          // nil for one of the package's own; redirects are not followed in any case
	Log       *slog.Logger          //
	Metrics   prometheus.Registerer //
}

// Webhook sends messages to one address. It is safe for concurrent use.
type Webhook struct {
	cfg     Config
	client  *http.Client
	log     *slog.Logger
	metrics *metrics
	pace    pace // of Run alone
	flaps   flaps
	failing bool // of Run alone: the last message was given up

	mu      sync.Mutex
	queue   []news
	leftOut int // given up since the last message
	bans    bans
	due     chan struct{} // something was queued
}

// news is one thing to tell: an event or a note.
type news struct {
	event market.Event
	note  string
	at    time.Time // when it was queued
}

var errURL = errors.New("the webhook's URL is no http or https URL") // and not shown: it is a secret

// New does no I/O. The error says what is wrong with the configuration, without the address.
func New(cfg Config) (*Webhook, error) {
	u, err := url.Parse(cfg.URL.Reveal())
	if !cfg.URL.IsZero() && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		return nil, errURL
	}
	return &Webhook{
		cfg: cfg, client: client(cfg.Client), log: cfg.Log, metrics: newMetrics(cfg.Metrics),
		flaps: flaps{}, bans: bans{}, due: make(chan struct{}, 1),
	}, nil
}

// Notify queues an event if it is one that people want to be told of. It never blocks.
func (w *Webhook) Notify(ev market.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wanted(&ev) && (ev.Type != market.EventGate || w.bans.news(&ev)) {
		w.add(news{event: ev, at: clock.Now()})
	}
}

// Note queues a sentence, such as that an isolation ends soon. It never blocks.
func (w *Webhook) Note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(news{note: text, at: clock.Now()})
}

// add queues news. w.mu is held.
func (w *Webhook) add(n news) {
	if w.cfg.URL.IsZero() {
		return
	}
	if len(w.queue) >= maxQueued {
		w.queue = append(w.queue[:0], w.queue[1:]...)
		w.leftOut++
		w.metrics.dropped.Inc()
	}
	w.queue = append(w.queue, n)
	select {
	case w.due <- struct{}{}:
	default: // it is due already
	}
}

// take empties the queue.
func (w *Webhook) take() (list []news, leftOut int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, leftOut = w.queue, w.leftOut
	w.queue, w.leftOut = nil, 0
	return list, leftOut
}

// first is when the oldest of what waits was queued, zero if nothing does.
func (w *Webhook) first() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return time.Time{}
	}
	return w.queue[0].at
}
