package ops

import (
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// overview reads everything at one moment.
func (b *Board) overview(now time.Time, last string) *Overview {
	now = now.UTC()
	o := &Overview{
		Instance: b.cfg.Instance, Version: b.cfg.Version, Boot: b.cfg.Guard.Boot(), Now: now, StartedAt: b.cfg.StartedAt.UTC(),
		HistorySince: b.cfg.Journal.HistorySince().UTC(), LastEvent: last, Degraded: []string{},
		Exchanges: make([]Exchange, 0, len(b.cfg.Exchanges)),
	}
	if b.cfg.Degraded != nil {
		o.Degraded = append(o.Degraded, b.cfg.Degraded()...)
	}
	o.Books = b.books(now)
	circuits, gates, budgets := b.cfg.Guard.Circuits(), b.cfg.Guard.Gates(), b.cfg.Guard.Budgets()
	views := make([]view, 0, len(b.cfg.Exchanges))
	for _, id := range b.cfg.Exchanges {
		v := view{
			id: id, now: now, overrides: b.cfg.Overrides.List(id), maintenance: b.cfg.Answers.Maintenance(id),
			circuits: of(circuits, func(st *market.CircuitStatus) bool { return st.ID.Exchange == id }),
			gates:    of(gates, func(g *market.GateStatus) bool { return g.Exchange == id && g.Until.After(now) }),
			budgets:  of(budgets, func(l *market.BudgetStatus) bool { return l.Exchange == id }),
		}
		if b.cfg.Feed != nil {
			v.streams = b.cfg.Feed.Status(id)
		}
		v.oldest = oldestServed(o.Books, id, now)
		v.judge(&b.history)
		views = append(views, v)
		o.Exchanges = append(o.Exchanges, b.exchange(&v))
	}
	o.Level, o.Headline = headline(views)
	return o
}

func of[T any](all []T, yes func(*T) bool) []T {
	var out []T
	for i := range all {
		if yes(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// exchange is one card.
func (b *Board) exchange(v *view) Exchange {
	x := Exchange{
		ID: v.id, State: v.state, Level: v.level, Why: sentence(v.why), Clients: sentence(v.clients), Since: instant(v.since),
		LastSuccess: instant(b.cfg.Guard.LastSuccess(v.id)), Streams: v.streams, Served: b.cfg.Answers.Served(v.id),
		Circuits: make([]Circuit, 0, len(v.circuits)), Overrides: make([]Override, 0, len(v.overrides)),
		Gates: make([]Gate, 0, len(v.gates)), Budgets: budgetRows(v.budgets), Maintenance: make([]Maintenance, 0, len(v.maintenance)),
		Samples: columns(b.cfg.Guard.Samples(v.id)), Failures: failureRows(b.cfg.Guard.Failures(v.id)),
	}
	if st := v.worst; st != nil && st.State == market.CircuitOpen && v.state == StateOpen {
		x.NextProbe, x.ProbeDue = instant(st.OpenUntil), st.ProbeDue
	}
	for i := range v.circuits {
		x.Circuits = append(x.Circuits, b.circuit(&v.circuits[i]))
	}
	for i := range v.overrides {
		x.Overrides = append(x.Overrides, overrideRow(&v.overrides[i]))
	}
	for i := range v.gates {
		x.Gates = append(x.Gates, gateRow(&v.gates[i]))
	}
	for i := range v.maintenance {
		m := &v.maintenance[i]
		x.Maintenance = append(x.Maintenance, Maintenance{
			From: instant(m.From), Until: instant(m.Until), Active: m.Active(v.now), Announced: m.Announced, Note: m.Note,
		})
	}
	return x
}

func (b *Board) circuit(st *market.CircuitStatus) Circuit {
	limits := b.cfg.Thresholds(st.ID.Exchange, st.ID.Class)
	c := Circuit{
		Class: st.ID.Class, Family: st.ID.Family, State: st.State, Isolated: st.Isolated, ProbeDue: st.ProbeDue,
		Since: st.Since.UTC(), OpenUntil: instant(st.OpenUntil), Trips: st.Trips, Cause: st.Cause,
		CauseText: causeText(st), Window: Window(st.Window), Thresholds: limits,
		Worst: Worst{
			Since: st.Worst.Since.UTC(), Consecutive: st.Worst.Consecutive,
			FailureShare: st.Worst.FailureShare, SlowShare: st.Worst.SlowShare,
		},
	}
	if st.LastKind != market.KindNone {
		c.LastFailure = st.LastKind.String()
	}
	return c
}

func overrideRow(o *market.Override) Override {
	row := Override{Kind: o.Kind, Class: o.Class, Actor: o.Actor, Reason: o.Reason, Since: o.Since.UTC(), Until: o.Until.UTC()}
	if !o.Pair.IsZero() {
		row.Symbol = o.Pair.String()
	}
	return row
}

// gateRow leaves the name of an account out: whose it is, is nobody's business here.
func gateRow(g *market.GateStatus) Gate {
	row := Gate{Scope: g.Scope.Kind, Name: g.Scope.Name, Kind: g.Kind.String(), Until: g.Until.UTC()}
	if g.Scope.Kind == market.ScopeAccount {
		row.Name = ""
	}
	return row
}

// budgetRows lists the rate limits. Adapters name the limit of one account LIMIT/ACCOUNT: of those the fullest stands for
// all, and no account is named.
func budgetRows(all []market.BudgetStatus) []Budget {
	rows := make([]Budget, 0, len(all))
	shared := make(map[string]int) // where the row of a limit of accounts is
	for i := range all {
		st := &all[i]
		name, _, ofAccount := strings.Cut(string(st.Limit.ID), "/")
		row := Budget{
			Limit: name, Capacity: st.Limit.Capacity, Share: st.Share, Used: st.Used, Waiting: st.Waiting,
			WindowMS: st.Limit.Window.Milliseconds(),
		}
		if !ofAccount {
			rows = append(rows, row)
			continue
		}
		at, known := shared[name]
		if !known {
			shared[name] = len(rows)
			rows = append(rows, row)
		} else if fuller(&row, &rows[at]) {
			rows[at] = row
		}
	}
	return rows
}

// fuller compares used shares, and calls that wait where these are equal.
func fuller(a, b *Budget) bool {
	used, than := int64(a.Used)*int64(b.Share), int64(b.Used)*int64(a.Share)
	return used > than || (used == than && a.Waiting > b.Waiting)
}

// columns turns samples into columns, which are a third of the size and what a sparkline wants.
func columns(all []market.Sample) SampleColumns {
	n := len(all)
	c := SampleColumns{
		StepMS: market.SampleLength.Milliseconds(), Attempts: make([]int, n), Failures: make([]int, n), Refused: make([]int, n),
		Retries: make([]int, n), P50MS: make([]*int64, n), P99MS: make([]*int64, n),
	}
	for i := range all {
		s := &all[i]
		if i == 0 {
			c.From = s.At.UTC()
		}
		c.Attempts[i], c.Failures[i], c.Refused[i], c.Retries[i] = s.Attempts, s.Failures, s.Refused, s.Retries
		if s.Attempts > 0 {
			c.P50MS[i], c.P99MS[i] = milliseconds(s.P50), milliseconds(s.P99)
		}
	}
	return c
}

func milliseconds(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

func failureRows(all []market.Failure) []Failure {
	rows := make([]Failure, 0, len(all))
	for i := range all {
		f := &all[i]
		rows = append(rows, Failure{
			At: f.At.UTC(), Op: f.Op, Kind: f.Kind.String(), Status: f.Status, Code: f.Code, ElapsedMS: f.Elapsed.Milliseconds(),
		})
	}
	return rows[:min(len(rows), maxFailures)]
}

// maxFailures and maxBooks bound what the overview shows.
const (
	maxFailures = 20
	maxBooks    = 200
)

// books lists what clients get or could get: what was answered lately and what is streamed, the oldest ages first.
func (b *Board) books(now time.Time) []Book {
	rows := make([]Book, 0)
	at := make(map[bookKey]int)
	if b.cfg.Feed != nil {
		for _, id := range b.cfg.Exchanges {
			for _, row := range b.cfg.Feed.Books(id) {
				row.Streamed = true
				if pair, err := market.ParsePair(row.Symbol); err == nil {
					at[bookKey{id, pair}] = len(rows)
				}
				rows = append(rows, row)
			}
		}
	}
	for _, s := range b.cfg.Answers.ServedBooks() {
		if i, streamed := at[bookKey{s.Exchange, s.Pair}]; streamed {
			rows[i].ServedAt = instant(s.ServedAt)
		} else if slices.Contains(b.cfg.Exchanges, s.Exchange) {
			rows = append(rows, bookRow(&s))
		}
	}
	for i := range rows {
		b.age(&rows[i], now)
	}
	slices.SortStableFunc(rows, func(x, y Book) int { return older(&x, &y) })
	return rows[:min(len(rows), maxBooks)]
}

func bookRow(s *market.ServedBook) Book {
	row := Book{
		Exchange: s.Exchange, Symbol: s.Pair.String(), Source: s.Source, Reason: s.Reason, ConfirmedAt: instant(s.ConfirmedAt),
		ChangedAt: instant(s.ChangedAt), ServedAt: instant(s.ServedAt),
	}
	bid, hasBid := s.Bid.Get()
	ask, hasAsk := s.Ask.Get()
	if hasBid {
		row.Bid = text(bid)
	}
	if hasAsk {
		row.Ask = text(ask)
	}
	if hasBid && hasAsk {
		row.Spread = text(market.Spread(bid, ask))
	}
	if s.Sequence.Known {
		row.Sequence = &s.Sequence.Value
	}
	return row
}

func text(n market.Number) *string {
	s := n.String()
	return &s
}

// age puts a book's age beside its bounds. What is not streamed is live as long as it is young; what is streamed says
// itself whether the exchange vouches for it.
func (b *Board) age(row *Book, now time.Time) {
	row.FreshForMS, row.StaleMaxMS = b.cfg.FreshFor.Milliseconds(), b.cfg.StaleMax.Milliseconds()
	if row.ConfirmedAt != nil {
		row.AgeMS = milliseconds(max(now.Sub(*row.ConfirmedAt), 0))
	}
	if !row.Streamed {
		row.Status = "stale"
		if row.AgeMS != nil && *row.AgeMS <= row.FreshForMS {
			row.Status = "live"
		}
	}
	if pair, err := market.ParsePair(row.Symbol); err == nil {
		if _, withheld := b.cfg.Overrides.Withheld(row.Exchange, pair); withheld {
			row.Status = "withheld"
		}
	}
}

// older sorts by age, the oldest first and what holds nothing last; then by name, so that rows keep their place.
func older(x, y *Book) int {
	switch {
	case x.AgeMS == nil && y.AgeMS == nil:
	case x.AgeMS == nil:
		return 1
	case y.AgeMS == nil:
		return -1
	case *x.AgeMS != *y.AgeMS:
		if *x.AgeMS > *y.AgeMS {
			return -1
		}
		return 1
	}
	if c := strings.Compare(string(x.Exchange), string(y.Exchange)); c != 0 {
		return c
	}
	return strings.Compare(x.Symbol, y.Symbol)
}

// inUse is how lately a book was answered to count as one that clients read now.
const inUse = time.Minute

// oldestServed is the greatest age of the books that clients of an exchange read now and that are not live; zero if there is
// none.
func oldestServed(books []Book, id market.ExchangeID, now time.Time) time.Duration {
	var oldest int64
	for i := range books {
		row := &books[i]
		if row.Exchange == id && row.Status == "stale" && row.AgeMS != nil && row.ServedAt != nil && now.Sub(*row.ServedAt) <= inUse {
			oldest = max(oldest, *row.AgeMS)
		}
	}
	return time.Duration(oldest) * time.Millisecond
}
