package api

import (
	"context"
	"net/http"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// exchanges answers GET /v1/exchanges. It asks no exchange anything.
func (s *Server) exchanges(_ context.Context, c *call, r *http.Request, _ *query) error {
	d := &c.doc
	d.open('{')
	d.array("exchanges")
	for _, id := range s.exchangeIDs {
		d.open('{')
		d.str("exchange", string(id))
		d.object("has")
		for _, name := range [...]string{"fetchOrderBook", "fetchTicker", "fetchTickers", "fetchMarkets", "fetchStatus"} {
			d.bool(name, true)
		}
		streamed := s.streamed(id)
		d.bool("watchOrderBook", streamed)
		d.bool("watchTicker", streamed)
		wallets := s.wallets(id)
		d.bool("fetchBalance", len(wallets) > 0)
		d.close('}')
		d.texts("wallets", wallets)
		d.object("circuits")
		for _, class := range market.Classes() {
			if state := s.circuitState(id, class); state != "" {
				d.str(string(class), string(state))
			}
		}
		d.close('}')
		d.close('}')
	}
	d.close(']')
	d.texts("degraded", s.degraded())
	d.close('}')
	s.sendPacked(c, r, http.StatusOK)
	return nil
}

// wallets are those that at least one configured account of the exchange has. Whose accounts they are is not told here.
func (s *Server) wallets(exchange market.ExchangeID) []string {
	var has []string
	for _, w := range [...]market.Wallet{market.WalletTrading, market.WalletFunding} {
		if len(s.cfg.Accounts.Names(exchange, w)) > 0 {
			has = append(has, string(w))
		}
	}
	return has
}

// status answers GET /v1/exchanges/{exchange}/status.
func (s *Server) status(ctx context.Context, c *call, r *http.Request, _ *query) error {
	exchange, err := s.exchange(c, r)
	if err != nil {
		return err
	}
	st, err := s.cfg.Books.Status(ctx, exchange)
	if err != nil {
		return err
	}
	now := clock.WallNow()
	c.doc.open('{')
	appendStatus(&c.doc, st, now)
	s.appendStreams(&c.doc, exchange, now)
	c.doc.close('}')
	s.sendPacked(c, r, http.StatusOK)
	return nil
}

// appendStatus writes, as fields, what the exchange announces, in the shape of ccxt's fetchStatus, and then what we know ourselves.
// An announcement is not a health check, so the two stay apart.
func appendStatus(d *doc, st *gateway.Status, now time.Time) {
	a := &st.Announced
	d.str("exchange", string(st.Exchange))
	d.str("status", string(a.State))
	d.epoch("updated", a.CheckedAt)
	d.epoch("eta", eta(st))
	d.null("url")
	d.object("info")
	d.strOrNull("message", a.Message)
	if st.AnnouncedError == market.KindNone {
		d.null("reason")
	} else {
		d.str("reason", st.AnnouncedError.String())
	}
	d.close('}')
	d.array("maintenance")
	for i := range st.Maintenance {
		appendMaintenance(d, &st.Maintenance[i], now)
	}
	d.close(']')
	d.array("circuits")
	for i := range st.Circuits {
		appendCircuit(d, &st.Circuits[i])
	}
	d.close(']')
	d.array("gates")
	for i := range st.Gates {
		appendGate(d, &st.Gates[i], now)
	}
	d.close(']')
	d.array("budgets")
	for i := range st.Budgets {
		appendBudget(d, &st.Budgets[i])
	}
	d.close(']')
	appendUnrecognized(d, st.Unrecognized)
	d.time("asked_at", st.AskedAt)
	d.int("books_held", int64(st.BooksHeld))
	d.int("markets", int64(st.Pairs))
	if st.Pairs > 0 {
		d.int("markets_age_ms", millis(st.PairsAge))
	} else {
		d.null("markets_age_ms")
	}
}

// appendUnrecognized writes who answered in the exchange's place: it may be down behind that, or the configuration names
// another host than it should.
func appendUnrecognized(d *doc, f *market.Failure) {
	if f == nil {
		d.null("unrecognized")
		return
	}
	setting := "hosts"
	// The others go to hosts.
	//exhaustive:ignore
	switch f.Op.Class() {
	case market.ClassAccount:
		setting = "account_hosts"
	case market.ClassStream:
		setting = "stream_hosts"
	}
	d.object("unrecognized")
	d.time("at", f.At)
	d.str("operation", string(f.Op))
	d.int("http_status", int64(f.Status))
	d.str("host", f.Host)
	d.str("question", "Is `"+setting+"` right?")
	d.close('}')
}

// eta is when it is expected to be over, zero if nobody knows: the end of the window that is open, be it announced or
// configured, else that of an announcement without a beginning.
func eta(st *gateway.Status) time.Time {
	if st.ETA.IsZero() {
		return st.Announced.Ends
	}
	return st.ETA
}

func appendMaintenance(d *doc, m *market.Maintenance, now time.Time) {
	d.open('{')
	d.time("from", m.From)
	d.time("until", m.Until)
	d.bool("active", m.Active(now))
	d.bool("announced", m.Announced)
	d.str("note", m.Note)
	d.close('}')
}

func appendCircuit(d *doc, c *market.CircuitStatus) {
	d.open('{')
	d.str("class", string(c.ID.Class))
	d.strOrNull("family", c.ID.Family)
	d.str("state", string(c.State))
	d.bool("isolated", c.Isolated)
	d.bool("probe_due", c.ProbeDue)
	d.time("since", c.Since)
	d.time("next_probe_at", c.OpenUntil)
	d.int("trips", int64(c.Trips))
	d.strOrNull("cause", string(c.Cause))
	if c.LastKind == market.KindNone {
		d.null("last_failure")
	} else {
		d.str("last_failure", c.LastKind.String())
	}
	d.object("window")
	d.int("settled", int64(c.Window.Settled))
	d.int("failures", int64(c.Window.Failures))
	d.int("slow", int64(c.Window.Slow))
	d.int("consecutive", int64(c.Window.Consecutive))
	d.close('}')
	d.close('}')
}

func appendGate(d *doc, g *market.GateStatus, now time.Time) {
	d.open('{')
	d.str("scope", string(g.Scope.Kind))
	if g.Scope.Kind == market.ScopeAccount {
		d.null("name") // whose account it is, is nobody's business on a public route
	} else {
		d.strOrNull("name", g.Scope.Name)
	}
	d.str("kind", g.Kind.String())
	d.time("until", g.Until)
	d.int("wait_ms", millis(max(0, g.Until.Sub(now))))
	d.close('}')
}

func appendBudget(d *doc, b *market.BudgetStatus) {
	d.open('{')
	d.str("limit", string(b.Limit.ID))
	d.int("capacity", int64(b.Limit.Capacity))
	d.int("window_ms", b.Limit.Window.Milliseconds())
	d.int("share", int64(b.Share))
	d.int("used", int64(b.Used))
	d.int("waiting", int64(b.Waiting))
	d.close('}')
}
