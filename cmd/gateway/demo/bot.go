package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/internal/market"
)

// bot is an ordinary client of the gateway: it reads each exchange's book twice a second and its balance every five
// seconds, over HTTP.
type bot struct {
	base   string
	key    market.Secret
	say    *voice
	client *http.Client
}

const (
	bookEvery    = 500 * time.Millisecond
	balanceEvery = 5 * time.Second
	stillEvery   = 5 * time.Second // how often a lasting outage is mentioned

	// botTimeout is longer than the gateway takes to answer at most, which is under 30 s: with less
	// the bot would give up on the gateway while that waits for an exchange that hangs, and blame the wrong one.
	botTimeout = 40 * time.Second
)

func (b *bot) run(ctx context.Context) error {
	runs := make([]func(context.Context) error, 0, 2*len(shown))
	for _, s := range shown {
		runs = append(runs,
			func(ctx context.Context) error { b.books(ctx, s.exchange, s.symbol); return nil },
			func(ctx context.Context) error { b.balances(ctx, s.exchange); return nil })
	}
	return app.Together(ctx, runs...)
}

// answer is what the bot reads of a book or a problem.
type answer struct {
	Status    int    `json:"-"`
	Retry     string `json:"-"`
	Stale     bool   `json:"stale"`
	Code      string `json:"code"`
	Freshness struct {
		AgeMS  int64  `json:"age_ms"`
		Reason string `json:"reason"`
	} `json:"freshness"`
}

// get is false when ctx ended.
func (b *bot) get(ctx context.Context, path string, key bool) (a answer, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		return a, false
	}
	if key {
		req.Header.Set("Authorization", "Bearer "+b.key.Reveal())
	}
	res, err := b.client.Do(req)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			b.say.line("", "no answer from the gateway itself: %v", err)
		}
		return a, false
	}
	defer res.Body.Close() // nothing was written
	a.Status, a.Retry = res.StatusCode, res.Header.Get("Retry-After")
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&a); err != nil {
		b.say.line("", "an answer of the gateway that is no JSON: %v", err)
		return a, false
	}
	return a, true
}

// books reads one book and speaks when its freshness changes.
func (b *bot) books(ctx context.Context, id market.ExchangeID, symbol string) {
	path := fmt.Sprintf("/v1/exchanges/%s/orderbook?symbol=%s&depth=5", id, url.QueryEscape(symbol))
	var staleSince, mentioned time.Time
	for wait(ctx, bookEvery) {
		a, ok := b.get(ctx, path, false)
		if !ok {
			continue
		}
		age := time.Duration(a.Freshness.AgeMS) * time.Millisecond
		switch now := time.Now(); {
		case a.Status != http.StatusOK:
			if now.Sub(mentioned) > stillEvery {
				b.say.line(string(id), "%s: %d %s", symbol, a.Status, a.Code)
				mentioned = now
			}
		case a.Stale && staleSince.IsZero():
			staleSince, mentioned = now, now
			b.say.line(string(id), "%s: 200, stale, %.1f s old, reason %s", symbol, age.Seconds(), a.Freshness.Reason)
		case a.Stale && now.Sub(mentioned) > stillEvery:
			mentioned = now
			b.say.line(string(id), "%s: 200, still stale, %.1f s old, reason %s", symbol, age.Seconds(), a.Freshness.Reason)
		case !a.Stale && !staleSince.IsZero():
			b.say.line(string(id), "%s: live again after %.0f s of stale answers, none of them an error", symbol, now.Sub(staleSince).Seconds())
			staleSince = time.Time{}
		}
	}
}

// balances reads one balance and speaks when it is refused, and when it is back.
func (b *bot) balances(ctx context.Context, id market.ExchangeID) {
	path := fmt.Sprintf("/v1/exchanges/%s/balance?account=main", id)
	refused := false
	for wait(ctx, balanceEvery) {
		a, ok := b.get(ctx, path, true)
		switch {
		case !ok:
		case a.Status != http.StatusOK:
			refused = true
			b.say.line(string(id), "balance: %d %s, no numbers, Retry-After %s s", a.Status, a.Code, a.Retry)
		case refused:
			refused = false
			b.say.line(string(id), "balance: 200, live again")
		}
	}
}
