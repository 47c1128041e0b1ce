package opscli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// booksShown is how many of the oldest books a status without an exchange lists.
const booksShown = 10

// paint colours words on a terminal; nothing is told by colour alone.
type paint bool

// level colours a word by how bad it is: blue, yellow, orange, bold orange, which the colour-blind can tell apart.
func (p paint) level(l ops.Level, word string) string {
	if !p {
		return word
	}
	code := map[ops.Level]string{ops.LevelOK: "34", ops.LevelNotice: "33", ops.LevelDegraded: "38;5;208", ops.LevelDown: "1;38;5;208"}[l]
	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

// WriteStatus writes the overview for people; of one exchange with everything about it if id is not "".
func WriteStatus(w io.Writer, o *ops.Overview, id market.ExchangeID, colour bool) error {
	p := paint(colour)
	t := table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), now: o.Now}
	fmt.Fprintf(w, "%s  %s\n", p.level(o.Level, strings.ToUpper(string(o.Level))), o.Headline)
	fmt.Fprintf(w, "instance %s, version %s, up %s, history since %s\n", o.Instance, o.Version, ops.Span(o.Now.Sub(o.StartedAt)),
		local(o.HistorySince, o.Now))
	if len(o.Degraded) > 0 {
		fmt.Fprintf(w, "not working as configured: %s\n", strings.Join(o.Degraded, ", "))
	}
	for i := range o.Exchanges {
		x := &o.Exchanges[i]
		if id == "" || x.ID == id {
			t.exchange(p, w, x, id != "")
		}
	}
	t.books(o.Books, id)
	return t.w.Flush()
}

type table struct {
	w   *tabwriter.Writer
	now time.Time
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

// exchange writes one exchange. The lines before its table are not part of any column.
func (t *table) exchange(p paint, w io.Writer, x *ops.Exchange, whole bool) {
	fmt.Fprintf(w, "\n%s  %s", x.ID, p.level(x.Level, x.State.Text()))
	if x.Since != nil {
		fmt.Fprintf(w, " for %s", ops.Span(t.now.Sub(*x.Since)))
	}
	if x.NextProbe != nil && x.NextProbe.After(t.now) {
		fmt.Fprintf(w, ", next try in %s", ops.Span(x.NextProbe.Sub(t.now)))
	} else if x.ProbeDue {
		fmt.Fprint(w, ", the next call tries it")
	}
	fmt.Fprintln(w)
	for _, s := range []string{x.Why, x.Clients} {
		if s != "" {
			fmt.Fprintln(w, "  "+s)
		}
	}
	for _, m := range x.Maintenance {
		fmt.Fprintf(w, "  maintenance %s: %s\n", period(m, t.now), m.Note)
	}
	for i := range x.Overrides {
		v := &x.Overrides[i]
		fmt.Fprintf(w, "  %s%s by %s until %s: %s\n", v.Kind, about(v), v.Actor, local(v.Until, t.now), v.Reason)
	}
	for _, g := range x.Gates {
		fmt.Fprintf(w, "  nothing is sent to %s %s before %s: %s\n", g.Scope, g.Name, local(g.Until, t.now), g.Kind)
	}
	t.circuits(x)
	if whole {
		t.budgets(x)
		t.failures(x)
	}
	_ = t.w.Flush() // the last Flush reports what went wrong with the writer
}

func (t *table) circuits(x *ops.Exchange) {
	t.row("  circuit", "state", "since", "settled", "failed", "slow", "in a row", "24 h worst", "why")
	for i := range x.Circuits {
		c := &x.Circuits[i]
		name := string(c.Class)
		if c.Family != "" {
			name += "/" + c.Family
		}
		state := string(c.State)
		if c.Isolated {
			state += ", isolated"
		}
		t.row("  "+name, state, ops.Span(t.now.Sub(c.Since)), fmt.Sprint(c.Window.Settled), fmt.Sprint(c.Window.Failures), fmt.Sprint(c.Window.Slow),
			fmt.Sprintf("%d/%d", c.Window.Consecutive, c.Thresholds.Consecutive),
			fmt.Sprintf("%d in a row, %.0f %% of %.0f %%", c.Worst.Consecutive, 100*c.Worst.FailureShare, 100*c.Thresholds.Rate), c.CauseText)
	}
}

func (t *table) budgets(x *ops.Exchange) {
	if len(x.Budgets) > 0 {
		t.row("")
		t.row("  limit", "used", "share", "of", "waiting", "in")
	}
	for _, b := range x.Budgets {
		t.row("  "+b.Limit, fmt.Sprint(b.Used), fmt.Sprint(b.Share), fmt.Sprint(b.Capacity), fmt.Sprint(b.Waiting), ops.Span(time.Duration(b.WindowMS)*time.Millisecond))
	}
}

func (t *table) failures(x *ops.Exchange) {
	if len(x.Failures) > 0 {
		t.row("")
		t.row("  failed attempt", "what", "kind", "status", "code", "took")
	}
	for _, f := range x.Failures {
		status := ""
		if f.Status != 0 {
			status = fmt.Sprint(f.Status)
		}
		t.row("  "+ops.Span(t.now.Sub(f.At))+" ago", string(f.Op), f.Kind, status, f.Code, ops.Span(time.Duration(f.ElapsedMS)*time.Millisecond))
	}
}

func (t *table) books(all []ops.Book, id market.ExchangeID) {
	shown := 0
	for i := range all {
		b := &all[i]
		if id != "" && b.Exchange != id || id == "" && shown == booksShown {
			continue
		}
		if shown++; shown == 1 {
			t.row("")
			t.row("book", "", "status", "age", "of at most", "source", "reason")
		}
		age := "-"
		if b.AgeMS != nil {
			age = ops.Span(time.Duration(*b.AgeMS) * time.Millisecond)
		}
		t.row(string(b.Exchange), b.Symbol, b.Status, age, ops.Span(time.Duration(b.StaleMaxMS)*time.Millisecond), b.Source, b.Reason)
	}
	if more := len(all) - shown; id == "" && more > 0 {
		t.row(fmt.Sprintf("and %d younger books", more))
	}
}

func about(v *ops.Override) string {
	switch {
	case v.Class != "":
		return " " + market.ClassText(v.Class)
	case v.Symbol != "":
		return " " + v.Symbol
	}
	return ""
}

func period(m ops.Maintenance, now time.Time) string {
	s := ""
	if m.From != nil {
		s += "from " + local(*m.From, now) + " "
	}
	if m.Until != nil {
		return s + "until " + local(*m.Until, now)
	}
	return s + "until nobody knows when"
}

// WriteOutcome writes what became of an order.
func WriteOutcome(w io.Writer, out *ops.Outcome) error {
	s, now := string(out.Verb), time.Now()
	if out.Exchange != "" {
		s += " " + string(out.Exchange)
	}
	if what := string(out.Class) + out.Symbol; what != "" {
		s += " " + what
	}
	if out.Until != nil {
		s += " until " + local(*out.Until, now)
	}
	lines := []string{s + ": " + became(out)}
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, label+text)
		}
	}
	add("", out.Clients) // what was replaced is said there
	add("result: ", out.Result)
	add("copies dropped from: ", strings.Join(out.Removed, ", "))
	add("takes a restart: ", strings.Join(out.Unchanged, ", "))
	recorded := strings.Join(out.Recorded, " and ")
	if recorded == "" {
		recorded = "the log alone: neither Redis nor the state directory took it"
	}
	lines = append(lines, fmt.Sprintf("recorded as %s by %s in %s", out.Event, out.Actor, recorded))
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// became is what became of an order, in a few words.
func became(out *ops.Outcome) string {
	if out.Changed {
		return "done"
	}
	switch out.Verb {
	case market.VerbRelease:
		return "nothing of it was in force"
	case market.VerbProbe:
		return "nothing was open; asked all the same"
	case market.VerbPurge:
		return "there was no copy"
	case market.VerbReload:
		return "read, and nothing changed"
	case market.VerbIsolate, market.VerbWithhold:
	}
	return "it was so already"
}

// EventLine is one event for people.
func EventLine(ev *market.Event) string {
	return ev.At.Local().Format("2 Jan 15:04:05") + "  " + ev.Text()
}

// local is an instant in the reader's own zone, with its seconds if it is within two minutes of now.
func local(t, now time.Time) string {
	if t.Sub(now).Abs() < 2*time.Minute {
		return t.Local().Format("2 Jan 15:04:05 MST")
	}
	return t.Local().Format("2 Jan 15:04 MST")
}
