package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestDesk_writesDownBeforeItActs: the audit is in the journal and at the keeper before anything has an effect, for every
// verb.
func TestDesk_writesDownBeforeItActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.feed.streamed = true
		for _, c := range []struct {
			order ops.Order
			want  []string
		}{
			{ops.Order{Verb: market.VerbIsolate, Exchange: okx}, []string{"tell isolate", "append isolate", "isolate okx/", "cut okx", "save isolate"}},
			{ops.Order{Verb: market.VerbRelease, Exchange: okx}, []string{"tell release", "append release", "release okx/", "wake okx", "save isolate"}},
			{ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassAccount}, []string{"tell isolate", "append isolate", "isolate okx/account", "save isolate"}},
			{ops.Order{Verb: market.VerbRelease, Exchange: okx, Class: market.ClassAccount}, []string{"tell release", "append release", "release okx/account", "save isolate"}},
			{ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc}, []string{"tell withhold", "append withhold", "withhold okx BTC/USDT true", "save withhold"}},
			{ops.Order{Verb: market.VerbRelease, Exchange: okx, Pair: btc}, []string{"tell release", "append release", "withhold okx BTC/USDT false", "save withhold"}},
			{ops.Order{Verb: market.VerbPurge, Exchange: okx, Pair: btc}, []string{"tell purge", "append purge", "resync BTC/USDT", "purge BTC/USDT"}},
			{ops.Order{Verb: market.VerbProbe, Exchange: okx}, []string{"tell probe", "append probe", "probe okx/", "wake okx", "ask okx/market_data"}},
			{ops.Order{Verb: market.VerbReload}, []string{"tell reload", "append reload", "reload"}},
		} {
			out := r.do(t, c.order)
			if diff := cmp.Diff(c.want, r.tape.take()); diff != "" {
				t.Errorf("%s: order of calls (-want +got):\n%s", c.order.Verb, diff)
			}
			if diff := cmp.Diff([]string{"redis", "state_dir"}, out.Recorded); diff != "" {
				t.Errorf("%s: recorded:\n%s", c.order.Verb, diff)
			}
			if out.Clients == "" || out.Event == "" {
				t.Errorf("%s: the outcome says nothing of clients or names no event: %+v", c.order.Verb, out)
			}
		}
	})
}

// TestDesk_refuses: what makes no sense is refused by name and leaves no trace at all.
func TestDesk_refuses(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		order   ops.Order
		field   string
		allowed int
	}{
		"no verb":              {ops.Order{Verb: "explode", Exchange: okx}, "verb", 6},
		"no exchange":          {ops.Order{Verb: market.VerbIsolate}, "exchange", 2},
		"unknown exchange":     {ops.Order{Verb: market.VerbIsolate, Exchange: "mtgox"}, "exchange", 2},
		"exchange of a reload": {ops.Order{Verb: market.VerbReload, Exchange: okx}, "exchange", 0},
		"unknown class":        {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: "books"}, "class", 4},
		"class of a purge":     {ops.Order{Verb: market.VerbPurge, Exchange: okx, Pair: btc, Class: market.ClassAccount}, "class", 0},
		"class of a withhold":  {ops.Order{Verb: market.VerbWithhold, Exchange: okx, Class: market.ClassAccount}, "class", 0},
		"purge of everything":  {ops.Order{Verb: market.VerbPurge, Exchange: okx}, "symbol", 0},
		"symbol of an isolate": {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Pair: btc}, "symbol", 0},
		"class and symbol":     {ops.Order{Verb: market.VerbRelease, Exchange: okx, Class: market.ClassStream, Pair: btc}, "symbol", 0},
		"no reason":            {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: " \t "}, "reason", 0},
		"long reason":          {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: strings.Repeat("ä", ops.MaxReason+1)}, "reason", 0},
		"two lines":            {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "a\nb"}, "reason", 0},
		"text that runs back":  {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "a\u202eb"}, "reason", 0},
		"not UTF-8":            {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "a\xff"}, "reason", 0},
		"no actor":             {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Actor: " "}, "actor", 0},
		"long actor":           {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Actor: strings.Repeat("a", ops.MaxActor+1)}, "actor", 0},
		"for and until":        {ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Hour, Until: now.Add(time.Hour)}, "for", 0},
		"for too long":         {ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: ops.MaxFor + 1}, "for", 0},
		"for below zero":       {ops.Order{Verb: market.VerbWithhold, Exchange: okx, For: -time.Second}, "for", 0},
		"until gone by":        {ops.Order{Verb: market.VerbWithhold, Exchange: okx, Until: now.Add(-time.Second)}, "until", 0},
		"until too late":       {ops.Order{Verb: market.VerbIsolate, Exchange: okx, Until: now.Add(25 * time.Hour)}, "until", 0},
		"for of a probe":       {ops.Order{Verb: market.VerbProbe, Exchange: okx, For: time.Hour}, "for", 0},
		"until of a release":   {ops.Order{Verb: market.VerbRelease, Exchange: okx, Until: now.Add(time.Hour)}, "until", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig("b1", nil)
			if c.field != "reason" {
				c.order.Reason = "why"
			}
			if c.field != "actor" {
				c.order.Actor = "night"
			}
			_, err := r.desk.Do(t.Context(), c.order)
			refused, ok := errors.AsType[*ops.RefusedError](err)
			if !ok {
				t.Fatalf("err = %v, want a refusal", err)
			}
			if refused.Field != c.field || len(refused.Allowed) != c.allowed || refused.Conflict {
				t.Errorf("refused %+v, want field %s with %d values", refused, c.field, c.allowed)
			}
			if !strings.HasSuffix(refused.Detail, ".") {
				t.Errorf("%q is not a sentence", refused.Detail)
			}
			if lines := r.tape.take(); len(lines) > 0 || r.guard.seq > 0 {
				t.Errorf("a refused order left traces: %v, %d events", lines, r.guard.seq)
			}
		})
	}
}

// TestDesk_tidiesUp: what is accepted is kept without blanks around it, and at its bounds.
func TestDesk_tidiesUp(t *testing.T) {
	r := newRig("b1", nil)
	out := r.do(t, ops.Order{
		Verb: market.VerbIsolate, Exchange: okx, For: ops.MaxFor, Reason: "  " + strings.Repeat("ä", ops.MaxReason) + " ", Actor: " night ",
	})
	if out.Actor != "night" || out.Reason != strings.Repeat("ä", ops.MaxReason) {
		t.Errorf("outcome %+v", out)
	}
}

// TestDesk_actsWithoutAPlaceToWriteTo: a full disk must not keep anybody from isolating an exchange.
func TestDesk_actsWithoutAPlaceToWriteTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.keeper.broken = true
		out := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx})
		if len(out.Recorded) != 0 || out.Recorded == nil {
			t.Errorf("recorded = %#v, want an empty list", out.Recorded)
		}
		if !strings.Contains(out.Clients, "does not survive a restart") {
			t.Errorf("clients = %q: it does not say that it is written down nowhere", out.Clients)
		}
		if r.guard.isolation(okx, market.ClassMarketData).IsZero() {
			t.Error("the exchange is not isolated")
		}
	})
}

// TestDesk_auditWaitsWithinItsBound: a keeper that hangs against its promise holds an order up for half a second, not longer.
func TestDesk_auditWaitsWithinItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.keeper.hang = make(chan struct{})
		began := time.Now()
		out := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx})
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if len(out.Recorded) != 0 {
			t.Errorf("recorded = %v", out.Recorded)
		}
	})
}

// TestDesk_twoPeopleAtOnce: both are audited, in the order in which their orders took effect.
func TestDesk_twoPeopleAtOnce(t *testing.T) {
	r := newRig("b1", nil)
	var acting sync.WaitGroup
	const people = 20
	for i := range people {
		acting.Go(func() {
			verb := market.VerbIsolate
			if i%2 == 1 {
				verb = market.VerbRelease
			}
			if _, err := r.desk.Do(t.Context(), ops.Order{Verb: verb, Exchange: okx, Reason: "r", Actor: fmt.Sprintf("person %d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	acting.Wait()
	actions := r.guard.events(market.EventAction)
	if len(actions) != people {
		t.Fatalf("%d orders are audited, want %d", len(actions), people)
	}
	if diff := cmp.Diff(ids(actions), r.keeper.ids()); diff != "" {
		t.Errorf("numbered and written down in different orders:\n%s", diff)
	}
	// Each order's calls stand together on the tape: no effect of one lies between the audit and the effect of another.
	var open string
	for _, line := range r.tape.take() {
		word, verb, _ := strings.Cut(line, " ")
		switch {
		case word == "tell":
			open = verb
		case word == "append" && verb != open, word == "isolate" && open != "isolate", word == "release" && open != "release":
			t.Fatalf("%q happened during %q", line, open)
		}
	}
	isolated := !r.guard.isolation(okx, market.ClassStream).IsZero()
	if last := actions[people-1].Action.Verb; isolated != (last == market.VerbIsolate) {
		t.Errorf("the last order was %s, and isolated is %v", last, isolated)
	}
}

func ids(events []market.Event) (out []string) {
	for _, ev := range events {
		out = append(out, ev.ID())
	}
	return out
}

// TestDesk_whoWaitsMayLeave: an order whose turn has not come is not carried out for somebody who left.
func TestDesk_whoWaitsMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.keeper.hang = make(chan struct{})
		go func() {
			_, _ = r.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "r", Actor: "a"})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := r.desk.Do(ctx, ops.Order{Verb: market.VerbIsolate, Exchange: binance, Reason: "r", Actor: "b"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		time.Sleep(time.Second)
		if n := len(r.guard.events(market.EventAction)); n != 1 {
			t.Errorf("%d orders are audited, want 1", n)
		}
	})
}

// TestDesk_isIdempotent: the same order again changes nothing and is audited all the same.
func TestDesk_isIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		o := ops.Order{Verb: market.VerbIsolate, Exchange: okx, Until: time.Now().Add(time.Hour)}
		first := r.do(t, o)
		r.tape.take()
		time.Sleep(time.Minute)
		again := r.do(t, o)
		if !first.Changed || again.Changed {
			t.Errorf("changed: %v, then %v", first.Changed, again.Changed)
		}
		if slices.ContainsFunc(r.tape.take(), func(l string) bool { return strings.HasPrefix(l, "isolate ") || strings.HasPrefix(l, "cut ") }) {
			t.Error("the exchange was isolated twice")
		}
		list := r.overrides.List(okx)
		if len(list) != 1 || time.Since(list[0].Since) < time.Minute {
			t.Errorf("in force: %+v, want one that began with the first order", list)
		}
		o.Until = o.Until.Add(time.Hour)
		if longer := r.do(t, o); !longer.Changed || len(r.overrides.List(okx)) != 1 || !r.guard.isolation(okx, market.ClassStream).Equal(o.Until) {
			t.Errorf("a later end did not take the place of the earlier: %+v", r.overrides.List(okx))
		}
		if n := len(r.guard.events(market.EventAction)); n != 3 {
			t.Errorf("%d orders are audited, want 3", n)
		}
	})
}

// TestDesk_overlappingIsolations: one of a class and one of the whole exchange stand beside each other; neither ends the
// other.
func TestDesk_overlappingIsolations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		defer r.run(t)()
		now := time.Now()
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: 2 * time.Hour})
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassStream, For: time.Hour})
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassAccount, For: 3 * time.Hour})
		for class, want := range map[market.Class]time.Duration{
			market.ClassMarketData: 2 * time.Hour, market.ClassStream: 2 * time.Hour, market.ClassAccount: 3 * time.Hour,
		} {
			if got := r.guard.isolation(okx, class).Sub(now); got != want {
				t.Errorf("%s is isolated for %v, want %v", class, got, want)
			}
		}
		out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx, Class: market.ClassStream})
		if !strings.Contains(out.Clients, "Still in force: okx isolated") {
			t.Errorf("clients = %q: the stream is still isolated with all the rest", out.Clients)
		}
		time.Sleep(2*time.Hour + time.Second)
		if until := r.guard.isolation(okx, market.ClassMarketData); !until.IsZero() {
			t.Error("market data is still isolated")
		}
		if until := r.guard.isolation(okx, market.ClassAccount); until.Sub(now) != 3*time.Hour {
			t.Errorf("the account is isolated until %v", until)
		}
		if lines := r.tape.take(); slices.Index(lines, "wake okx") < 0 {
			t.Errorf("the streams were not woken: %v", lines)
		}
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx})
		if out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx}); !out.Changed || len(r.overrides.List(okx)) != 0 {
			t.Errorf("still in force: %+v", r.overrides.List(okx))
		}
		if out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx}); out.Changed {
			t.Error("there was nothing left to release")
		}
	})
}

// TestDesk_failedIsolationIsNotShown: what the guard did not do is not in force, and the error says so after the audit.
func TestDesk_failedIsolationIsNotShown(t *testing.T) {
	r := newRig("b1", nil)
	r.guard.failing = errors.New("no such exchange")
	_, err := r.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "r", Actor: "a"})
	if _, refused := errors.AsType[*ops.RefusedError](err); err == nil || refused {
		t.Errorf("err = %v", err)
	}
	if list := r.overrides.All(); len(list) > 0 {
		t.Errorf("in force: %+v", list)
	}
	if lines := r.tape.take(); slices.Contains(lines, "save isolate") || !slices.Contains(lines, "append isolate") {
		t.Errorf("calls: %v", lines)
	}
}

// TestDesk_probe: refused in a ban and in an isolation; otherwise the exchange is asked, within a bound, and quoted.
func TestDesk_probe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		probe := ops.Order{Verb: market.VerbProbe, Exchange: okx, Reason: "r", Actor: "a"}
		refused := func(wait time.Duration) {
			t.Helper()
			_, err := r.desk.Do(t.Context(), probe)
			e, ok := errors.AsType[*ops.RefusedError](err)
			if !ok || !e.Conflict || e.Wait != wait {
				t.Errorf("err = %#v, want a refusal for %v", err, wait)
			}
			if lines := r.tape.take(); len(lines) > 0 {
				t.Errorf("a refused probe did something: %v", lines)
			}
		}
		r.guard.gates = []market.GateStatus{{Exchange: okx, Scope: market.Scope{Kind: market.ScopeIP}, Kind: market.KindBanned, Until: time.Now().Add(time.Minute)}}
		refused(time.Minute)
		r.guard.gates[0].Scope = market.Scope{Kind: market.ScopeSymbol, Name: "BTC-USDT"} // no reason not to ask
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Hour})
		r.tape.take()
		refused(market.OperatorWait)
		r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx})
		r.tape.take()

		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassAccount, For: time.Hour})
		r.tape.take()
		refused(market.OperatorWait)
		probe.Class = market.ClassReference
		r.do(t, probe)
		probe.Class = ""
		r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx})

		r.set(okx, market.ClassMarketData, func(st *market.CircuitStatus) { st.State = market.CircuitOpen })
		r.set(okx, market.ClassAccount, func(st *market.CircuitStatus) { st.State = market.CircuitOpen })
		r.answers.answer[market.ClassAccount] = &market.Error{Kind: market.KindTimeout}
		r.answers.ask = func(context.Context) {
			r.set(okx, market.ClassMarketData, func(st *market.CircuitStatus) { st.State = market.CircuitClosed })
		}
		out := r.do(t, probe)
		if out.Result != "market_data closed, account timeout" || !out.Changed {
			t.Errorf("outcome %+v", out)
		}
		if want := "Still open at okx: account. Clients get what they got before."; out.Clients != want {
			t.Errorf("clients = %q", out.Clients)
		}

		r.answers.ask = func(ctx context.Context) { <-ctx.Done() } // hangs
		r.answers.answer[market.ClassAccount] = context.DeadlineExceeded
		probe.Class = market.ClassAccount
		began := time.Now()
		if out := r.do(t, probe); out.Result != "timeout" || time.Since(began) != 5*time.Second {
			t.Errorf("%q after %v", out.Result, time.Since(began))
		}

		r.set(okx, market.ClassAccount, func(st *market.CircuitStatus) { st.State = market.CircuitClosed })
		r.answers.ask = nil
		if out := r.do(t, probe); out.Result != "timeout" || !strings.HasPrefix(out.Clients, "No circuit of okx account is open") {
			t.Errorf("outcome %+v", out)
		}
		r.answers.answer[market.ClassAccount] = nil
		if out := r.do(t, probe); out.Result != "closed" || out.Changed || !strings.HasPrefix(out.Clients, "Clients get live answers") {
			t.Errorf("outcome %+v", out)
		}

		r.guard.probe = &market.Error{Kind: market.KindIsolated, RetryAfter: time.Minute} // came up in between
		if _, err := r.desk.Do(t.Context(), probe); err == nil || !strings.Contains(err.Error(), "isolated") {
			t.Errorf("err = %v", err)
		}
	})
}

// TestDesk_slowProbeHoldsNobodyUp: an isolation is carried out while somebody waits for an exchange to answer.
func TestDesk_slowProbeHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.answers.ask = func(ctx context.Context) { <-ctx.Done() }
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.desk.Do(t.Context(), ops.Order{Verb: market.VerbProbe, Exchange: okx, Reason: "r", Actor: "a"})
		}()
		synctest.Wait()
		began := time.Now()
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx})
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the isolation waited for %v", waited)
		}
		<-done
	})
}

func TestDesk_purge(t *testing.T) {
	r := newRig("b1", nil)
	r.copies.where, r.feed.streamed = []string{"memory", "redis"}, true
	out := r.do(t, ops.Order{Verb: market.VerbPurge, Exchange: okx, Pair: btc})
	if diff := cmp.Diff([]string{"memory", "redis", "stream"}, out.Removed); diff != "" || !out.Changed {
		t.Errorf("removed:\n%s", diff)
	}
	r.copies.where, r.feed.streamed = nil, false
	if out = r.do(t, ops.Order{Verb: market.VerbPurge, Exchange: okx, Pair: btc}); out.Changed {
		t.Error("there was nothing to purge")
	}
	r.copies.err = errors.New("redis may still hold it")
	_, err := r.desk.Do(t.Context(), ops.Order{Verb: market.VerbPurge, Exchange: okx, Pair: btc, Reason: "r", Actor: "a"})
	if err == nil || !strings.Contains(err.Error(), "redis may still hold it") {
		t.Errorf("err = %v", err)
	}
}

func TestDesk_reload(t *testing.T) {
	r := newRig("b1", nil)
	r.reloader.changed, r.reloader.needRestart = []string{"warm", "log_level"}, []string{"listen"}
	out := r.do(t, ops.Order{Verb: market.VerbReload})
	if out.Result != "changed: warm, log_level" || !slices.Equal(out.Unchanged, []string{"listen"}) || !out.Changed {
		t.Errorf("outcome %+v", out)
	}
	r.reloader.err = errors.New("config.yaml:3:1: unknown key")
	_, err := r.desk.Do(t.Context(), ops.Order{Verb: market.VerbReload, Reason: "r", Actor: "a"})
	if err == nil || !strings.Contains(err.Error(), "nothing was changed: config.yaml:3:1") {
		t.Errorf("err = %v", err)
	}
}

// TestDesk_doubtsAnUnreadPair: a mistyped symbol withholds nothing that anybody reads, and the answer says so.
func TestDesk_doubtsAnUnreadPair(t *testing.T) {
	r := newRig("b1", nil)
	r.answers.served = []market.ServedBook{{Exchange: okx, Pair: btc}}
	const doubt = "is it spelt as clients spell it?"
	if out := r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc}); strings.Contains(out.Clients, doubt) {
		t.Errorf("clients = %q", out.Clients)
	}
	other := market.Pair{Base: "BTC", Quote: "USDTT"}
	if out := r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: other}); !strings.Contains(out.Clients, doubt) {
		t.Errorf("clients = %q", out.Clients)
	}
	r.feed.books = []ops.Book{{Exchange: okx, Symbol: other.String()}}
	if out := r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: other}); strings.Contains(out.Clients, doubt) {
		t.Errorf("clients = %q", out.Clients)
	}
}

// TestDesk_bound: more than a thousand overrides are refused; taking the place of one is not.
func TestDesk_bound(t *testing.T) {
	r := newRig("b1", nil)
	for i := range 1000 {
		o := market.Override{
			Kind: market.OverrideWithhold, Exchange: okx, Pair: market.Pair{Base: fmt.Sprintf("C%d", i), Quote: "USDT"},
			Since: time.Now(), Until: time.Now().Add(time.Hour),
		}
		r.keeper.overrides[key(o)] = o
	}
	if err := r.desk.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := r.desk.Do(t.Context(), ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc, Reason: "r", Actor: "a"})
	if e, ok := errors.AsType[*ops.RefusedError](err); !ok || !e.Conflict {
		t.Errorf("err = %v", err)
	}
	r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: market.Pair{Base: "C7", Quote: "USDT"}, For: 2 * time.Hour})
	if out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx}); len(out.Clients) > 1000 || len(r.overrides.All()) != 0 {
		t.Errorf("clients = %q, %d in force", out.Clients, len(r.overrides.All()))
	}
}
