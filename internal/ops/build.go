package ops

import (
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// overview reads everything at one moment.
func (b *Board) overview(now time.Time, last string) *Overview {
	now = now.UTC()
	o := &Overview{
		Instance: b.cfg.Instance, Version: b.cfg.Version, Boot: b.cfg.Guard.Boot(), Now: now, StartedAt: clock.Wall(b.cfg.StartedAt).UTC(),
		HistorySince: b.cfg.Journal.HistorySince().UTC(), LastEvent: last, Degraded: []string{},
		Exchanges: make([]Exchange, 0, len(b.cfg.Exchanges)),
	}
	if b.cfg.Degraded != nil {
		o.Degraded = append(o.Degraded, b.cfg.Degraded()...)
	}
	streamed := b.streamed()
	o.Books = b.books(streamed, now)
	o.Clients = b.clients()
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
		v.lately = b.cfg.Answers.Lately(id, streamed[id])
		v.oldest = oldestServed(o.Books, id, now)
		v.judge(&b.history)
		views = append(views, v)
		o.Exchanges = append(o.Exchanges, b.exchange(&v))
	}
	o.Level, o.Headline = headline(views)
	return o
}

// clientsShown is how many clients an operator needs to see to find the one that is too many.
const clientsShown = 10

func (b *Board) clients() []ClientUse {
	if b.cfg.Clients == nil {
		return []ClientUse{}
	}
	top := b.cfg.Clients.Top(clientsShown)
	return append([]ClientUse{}, top[:min(len(top), clientsShown)]...)
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
		Answering: v.answeringRow(),
		Circuits:  make([]Circuit, 0, len(v.circuits)), Overrides: make([]Override, 0, len(v.overrides)),
		Gates: make([]Gate, 0, len(v.gates)), Budgets: budgetRows(v.budgets), Maintenance: make([]Maintenance, 0, len(v.maintenance)),
		Samples: columns(b.cfg.Guard.Samples(v.id)), Failures: failureRows(b.cfg.Guard.Failures(v.id)),
	}
	if st := v.worst; v.state == StateOpen {
		x.NextProbe, x.ProbeDue = instant(st.OpenUntil), st.ProbeDue
	}
	for i := range v.circuits {
		x.Circuits = append(x.Circuits, b.circuit(&v.circuits[i]))
	}
	for i := range v.overrides {
		x.Overrides = append(x.Overrides, overrideRow(&v.overrides[i]))
	}
	for i := range v.gates[:min(len(v.gates), maxGates)] {
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
		CauseText: market.CauseText(st.Cause, st.Window, st.LastKind), Window: Window(st.Window), Thresholds: limits,
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

// Bounds of what the overview shows: attempts that went wrong, and closed gates, of which a listing of broken symbols could
// have thousands. Why says how many there are.
const (
	maxFailures = 20
	maxGates    = 100
)
