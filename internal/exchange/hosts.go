package exchange

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// Hosts are base URLs of one exchange that answer the same requests, in order of preference. A host that could not be
// reached goes to the back of the order for a while. Safe for concurrent use.
type Hosts struct {
	all []string

	mu      sync.Mutex
	until   map[string]time.Time // hosts to avoid; never holds more than all
	answers map[string]bool      // hosts that answered a ping of a stream; never holds more than all
	refused bool                 // the last of them refused our place on earth, and none has answered since
}

// avoidFor is how long a host that could not be reached is asked last.
const avoidFor = time.Minute

// NewHosts keeps the order given.
func NewHosts(base []string) *Hosts {
	return &Hosts{all: slices.Clone(base), until: make(map[string]time.Time), answers: make(map[string]bool)}
}

// BaseURLs checks configured hosts and returns them without a slash at the end; without any it returns the adapter's own.
// An error names every host that is not the base of a URL.
func BaseURLs(configured, own []string) ([]string, error) {
	if len(configured) == 0 {
		return own, nil
	}
	base := make([]string, len(configured))
	var wrong []error
	for i, host := range configured {
		u, err := url.Parse(host)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			(u.Scheme != "https" && u.Scheme != "http") {
			wrong = append(wrong, fmt.Errorf("host %d is not a base URL: write for example %s", i+1, own[0]))
			continue
		}
		base[i] = strings.TrimRight(host, "/")
	}
	return base, errors.Join(wrong...)
}

// StreamURLs is BaseURLs for streams: wss and ws are read as https and http, which is how a connection begins.
func StreamURLs(configured, own []string) ([]string, error) {
	read := make([]string, len(configured))
	for i, host := range configured {
		if rest, ok := strings.CutPrefix(host, "ws"); ok {
			host = "http" + rest
		}
		read[i] = host
	}
	return BaseURLs(read, own)
}

// inOrder is the order in which to ask: hosts to avoid last, those that were avoided first before the others, else as
// configured. While all of them refuse our place on earth it is one host a call, in turn: the exchange has refused us, and
// is asked once whether it still does.
func (h *Hosts) inOrder() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.until) == 0 {
		return h.all
	}
	now := clock.Now()
	order := slices.Clone(h.all)
	slices.SortStableFunc(order, func(a, b string) int { return h.avoided(a, now).Compare(h.avoided(b, now)) })
	if h.refused {
		return order[:1]
	}
	return order
}

// avoided is until when a host is asked last, zero if it is not. While all refuse, that does not pass with time: it only
// says whose turn it is.
func (h *Hosts) avoided(host string, now time.Time) time.Time {
	if until := h.until[host]; h.refused || now.Before(until) {
		return until
	}
	return time.Time{}
}

func (h *Hosts) avoid(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until[host] = clock.Now().Add(avoidFor)
}

func (h *Hosts) prefer(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.until, host)
	h.refused = false
}

// refuse notes that the last host refused our place on earth, as those before it did.
func (h *Hosts) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = true
}

// answered notes that a host answered a ping.
func (h *Hosts) answered(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[host] = true
}

// answersPings tells whether a host ever did.
func (h *Hosts) answersPings(host string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers[host]
}
