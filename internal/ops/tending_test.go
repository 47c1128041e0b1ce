package ops_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestDesk_endsByItself: at its time an isolation and a withholding end, once, and that is told and written down.
func TestDesk_endsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		defer r.run(t)()
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: 45 * time.Minute})
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: binance, Pair: btc, For: time.Hour})
		r.tape.take()
		if _, ok := r.overrides.Withheld(binance, btc); !ok {
			t.Error("the pair is not withheld")
		}

		time.Sleep(45*time.Minute - time.Nanosecond)
		synctest.Wait()
		if lines := r.tape.take(); len(lines) > 0 {
			t.Errorf("before its time: %v", lines)
		}
		time.Sleep(time.Nanosecond)
		if list := r.overrides.List(okx); len(list) > 0 {
			t.Errorf("at its time it still counts: %+v", list)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"release okx/", "wake okx", "tell end of isolate"}, r.tape.take()); diff != "" {
			t.Errorf("at its time (-want +got):\n%s", diff)
		}
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"withhold binance BTC/USDT false", "tell end of withhold"}, r.tape.take()); diff != "" {
			t.Errorf("at the other's time (-want +got):\n%s", diff)
		}
		if _, ok := r.overrides.Withheld(binance, btc); ok {
			t.Error("the pair is still withheld")
		}
		time.Sleep(24 * time.Hour)
		ends := r.guard.events(market.EventOverride)
		if len(ends) != 2 || ends[0].Override.Actor != "night" || !ends[0].Override.Until.Equal(ends[0].Until) {
			t.Errorf("ends told: %+v", ends)
		}
		if got := r.keeper.ids(); len(got) != 4 {
			t.Errorf("written down: %v, want two orders and two ends", got)
		}
	})
}

// TestDesk_endsWhateverTheGuardSays: what is over is over and told once, even if the guard refuses to be told.
func TestDesk_endsWhateverTheGuardSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		defer r.run(t)()
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Minute})
		r.guard.mu.Lock()
		r.guard.failing = errors.New("no such exchange")
		r.guard.mu.Unlock()
		time.Sleep(time.Hour)
		if n := len(r.guard.events(market.EventOverride)); n != 1 || len(r.overrides.All()) != 0 {
			t.Errorf("%d ends told, want 1; in force: %+v", n, r.overrides.All())
		}
	})
}

// TestDesk_survivesARestart: what is in force is so again before the first request, and ends at the same time; what ended
// meanwhile is told.
func TestDesk_survivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig("b1", nil)
		stop := first.run(t)
		first.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Hour, Reason: "they asked us to"})
		first.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: binance, Pair: btc, For: 20 * time.Minute})
		first.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: binance, For: time.Hour})
		first.do(t, ops.Order{Verb: market.VerbRelease, Exchange: binance, Reason: "all good"})
		first.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: binance, Pair: btc, For: 20 * time.Minute})
		synctest.Wait()
		stop()
		until := first.guard.isolation(okx, market.ClassStream)

		time.Sleep(30 * time.Minute)
		second := newRig("b2", first.keeper)
		if err := second.desk.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, class := range market.Classes() {
			if got := second.guard.isolation(okx, class); !got.Equal(until) {
				t.Errorf("%s is isolated until %v, want %v", class, got, until)
			}
		}
		if diff := cmp.Diff([]string{"isolate okx/", "cut okx", "tell end of withhold"}, second.tape.take()); diff != "" {
			t.Errorf("what the restart did (-want +got):\n%s", diff)
		}
		list := second.overrides.All()
		if len(list) != 1 || list[0].Reason != "they asked us to" || list[0].Actor != "night" {
			t.Errorf("in force: %+v", list)
		}
		if texts, known := second.journal.After(first.guard.told[0].ID()); !known || len(texts) != 5 {
			t.Errorf("%d events after the first of the earlier life (known: %v), want 5", len(texts), known)
		}
		stop = second.run(t)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if len(second.overrides.All()) != 0 || len(second.guard.isolated) != 0 {
			t.Errorf("it did not end: %+v", second.overrides.All())
		}
		stop()
	})
}

// TestDesk_reminds: two minutes before an isolation ends, once, and not of short ones, withholdings, or what was released
// or made longer.
func TestDesk_reminds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		stop := r.run(t)
		began := time.Now()
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Hour})
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassStream, For: 4*time.Minute - 1})
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: binance, For: 50 * time.Minute})
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: binance, Class: market.ClassAccount, For: 30 * time.Minute})
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: binance, For: 20 * time.Minute})
		r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: binance, Class: market.ClassAccount})
		time.Sleep(40 * time.Minute)
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: binance, For: 3 * time.Hour})
		time.Sleep(18*time.Minute - time.Millisecond)
		synctest.Wait()
		if got := r.reminders(); len(got) != 0 {
			t.Errorf("reminded too early: %+v", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := r.reminders(); len(got) != 1 || got[0].Exchange != okx {
			t.Fatalf("after %v: reminded of %+v, want okx", time.Since(began), got)
		}
		// Somebody gives another hour: it is reminded of again, before the new end.
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Hour})
		time.Sleep(4 * time.Hour)
		stop()
		if got := r.reminders(); len(got) != 3 {
			t.Errorf("reminded of %+v, want okx twice and binance once", got)
		}
	})
}

// TestDesk_adoptsWithoutAudit: what another process put in force or released is in force or released here, too; who did it
// wrote it down, so it is not written down again.
func TestDesk_adoptsWithoutAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newRig("b1", nil)
		stop := one.run(t)
		two := newRig("b2", one.keeper)
		one.keeper.tape = &tape{}
		one.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: time.Hour})
		two.desk.Adopt()
		if diff := cmp.Diff([]string{"isolate okx/", "cut okx"}, two.tape.take()); diff != "" {
			t.Errorf("adopted (-want +got):\n%s", diff)
		}
		two.desk.Adopt()
		one.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx})
		two.desk.Adopt()
		if diff := cmp.Diff([]string{"release okx/", "wake okx"}, two.tape.take()); diff != "" {
			t.Errorf("adopted (-want +got):\n%s", diff)
		}
		if two.guard.seq != 0 {
			t.Errorf("%d events of what another process did", two.guard.seq)
		}
		// One that ends while it is known here is told here, even if the keeper forgets it first.
		one.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: binance, For: time.Minute})
		two.desk.Adopt()
		time.Sleep(time.Minute)
		two.desk.Adopt()
		if n := len(two.guard.events(market.EventOverride)); n != 1 || !two.guard.isolation(binance, market.ClassAccount).IsZero() {
			t.Errorf("%d ends told, want 1", n)
		}
		stop()
	})
}

// TestDesk_leavesForeignExchangesAlone: an override of an exchange that is switched off here does nothing here, and stays
// where it is kept.
func TestDesk_leavesForeignExchangesAlone(t *testing.T) {
	r := newRig("b1", nil)
	o := market.Override{Kind: market.OverrideIsolate, Exchange: "coinbase", Since: time.Now(), Until: time.Now().Add(time.Hour)}
	r.keeper.overrides[key(o)] = o
	if err := r.desk.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.desk.Adopt()
	if lines := r.tape.take(); len(lines) > 0 || len(r.overrides.All()) > 0 || len(r.keeper.overrides) != 1 {
		t.Errorf("calls %v, in force %v", lines, r.overrides.All())
	}
}

// TestOverrides_withheld: a pair is withheld by itself or with its exchange, and no longer than that.
func TestOverrides_withheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		now := time.Now()
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc, For: 2 * time.Hour})
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, For: time.Hour})
		eth := market.Pair{Base: "ETH", Quote: "USDT"}
		f := func(exchange market.ExchangeID, pair market.Pair, want time.Duration) {
			t.Helper()
			until, ok := r.overrides.Withheld(exchange, pair)
			if ok != (want > 0) || (ok && until.Sub(now) != want) {
				t.Errorf("%s %s: withheld for %v (%v), want %v", exchange, pair, until.Sub(now), ok, want)
			}
		}
		f(okx, btc, 2*time.Hour)
		f(okx, eth, time.Hour)
		f(okx, market.Pair{}, time.Hour)
		f(binance, btc, 0)
		time.Sleep(time.Hour) // nobody runs that would end it
		f(okx, eth, 0)
		f(okx, market.Pair{}, 0)
		f(okx, btc, 2*time.Hour)
		if kinds := slices.Collect(func(yield func(market.OverrideKind) bool) {
			for _, o := range r.overrides.All() {
				yield(o.Kind)
			}
		}); len(kinds) != 1 {
			t.Errorf("in force: %v", kinds)
		}
	})
}
