package exchange

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Hosts are base URLs of one exchange that answer the same requests, in order of preference. A host that could not be
// reached goes to the back of the order for a while. Safe for concurrent use.
type Hosts struct {
	all []string

	mu    sync.Mutex
	until map[string]time.Time // hosts to avoid; never holds more than all
}

// avoidFor is how long a host that could not be reached is asked last.
const avoidFor = time.Minute

// NewHosts keeps the order given.
func NewHosts(base []string) *Hosts {
	return &Hosts{all: slices.Clone(base), until: make(map[string]time.Time)}
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

// Len is the number of hosts.
func (h *Hosts) Len() int { return len(h.all) }

// inOrder is the order in which to ask: hosts to avoid last, else as configured.
func (h *Hosts) inOrder() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.until) == 0 {
		return h.all
	}
	now := time.Now()
	good, bad := make([]string, 0, len(h.all)), []string(nil)
	for _, host := range h.all {
		if now.Before(h.until[host]) {
			bad = append(bad, host)
		} else {
			good = append(good, host)
		}
	}
	return append(good, bad...)
}

func (h *Hosts) avoid(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until[host] = time.Now().Add(avoidFor)
}

func (h *Hosts) prefer(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.until, host)
}
