package ops_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestDesk_saysWhatItReplaces: nobody shortens a colleague's isolation without a notice.
func TestDesk_saysWhatItReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		first := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: 4 * time.Hour, Actor: "bob", Reason: "upgrade"})
		if first.Replaced != nil || strings.Contains(first.Clients, "replaces") {
			t.Errorf("the first replaces %+v: %s", first.Replaced, first.Clients)
		}
		class := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassAccount, For: time.Hour})
		if class.Replaced != nil {
			t.Errorf("one of a class replaces that of the exchange: %+v", class.Replaced)
		}
		out := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: 15 * time.Minute, Actor: "ann"})
		want := &ops.Replaced{Actor: "bob", Reason: "upgrade", Until: *first.Until}
		if diff := cmp.Diff(want, out.Replaced); diff != "" {
			t.Errorf("replaced (-want +got):\n%s", diff)
		}
		if words := "It replaces bob's until 04:00 UTC: upgrade."; !strings.Contains(out.Clients, words) {
			t.Errorf("clients = %q, want %q in it", out.Clients, words)
		}
		again := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Until: *out.Until, Actor: "ann"})
		if again.Replaced != nil || again.Changed {
			t.Errorf("the same again replaces %+v", again.Replaced)
		}
		time.Sleep(15 * time.Minute)
		if over := r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Actor: "bob"}); over.Replaced != nil {
			t.Errorf("what is over was replaced: %+v", over.Replaced)
		}
	})
}

// TestDesk_writesHundredsDownAtOnce: one call of the keeper, whatever is released.
func TestDesk_writesHundredsDownAtOnce(t *testing.T) {
	r := newRig("b1", nil)
	const pairs = 600
	for i := range pairs {
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: market.Pair{Base: fmt.Sprintf("C%d", i), Quote: "USDT"}})
	}
	r.keeper.saves = 0
	out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx})
	if r.keeper.saves != 1 || len(r.keeper.overrides) != 0 || len(out.Recorded) != 2 || !out.Changed {
		t.Errorf("%d calls, %d are left, recorded in %q", r.keeper.saves, len(r.keeper.overrides), out.Recorded)
	}
	if out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx}); r.keeper.saves != 1 || len(out.Recorded) != 2 {
		t.Errorf("a release of nothing made %d calls, recorded in %q", r.keeper.saves-1, out.Recorded)
	}
}

// TestDesk_saysWhatFailed: an order that was written down and has no effect is followed by a line that says so, from the
// same actor, and that is written down too.
func TestDesk_saysWhatFailed(t *testing.T) {
	for name, c := range map[string]struct {
		order ops.Order
		fail  func(*rig)
		want  string
	}{
		"reload": {ops.Order{Verb: market.VerbReload}, func(r *rig) {
			r.reloader.err = errors.New("config.yaml:3:1: unknown key\nconfig.yaml:4:1: \u202eunknown key")
		}, "nothing was changed: config.yaml:3:1: unknown key; config.yaml:4:1:  unknown key"},
		"purge": {ops.Order{Verb: market.VerbPurge, Exchange: okx, Pair: btc}, func(r *rig) {
			r.copies.err = errors.New("redis may still hold it")
		}, "redis may still hold it"},
		"probe": {ops.Order{Verb: market.VerbProbe, Exchange: okx, Class: market.ClassAccount}, func(r *rig) {
			r.guard.probe = &market.Error{Kind: market.KindIsolated}
		}, "Nothing was asked of okx account: isolated."},
		"isolate": {ops.Order{Verb: market.VerbIsolate, Exchange: okx}, func(r *rig) {
			r.guard.failing = errors.New(strings.Repeat("ä", 300))
		}, strings.Repeat("ä", 98) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig("b1", nil)
			c.fail(r)
			o := c.order
			o.Actor, o.Reason = "bob", "r"
			if _, err := r.desk.Do(t.Context(), o); err == nil {
				t.Fatal("it did not fail")
			}
			lines := r.guard.events(market.EventAction)
			if len(lines) != 2 || lines[0].Action.Failed != "" {
				t.Fatalf("the audit is %+v, want two lines, the first of what was asked for", lines)
			}
			want := lines[0].Action
			want.Failed = c.want
			if name == "isolate" { // the guard fails at the way back, too
				if got := lines[1].Action.Failed; len(got) > market.MaxFailed || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä…") {
					t.Errorf("failed = %q", got)
				}
				want.Failed = lines[1].Action.Failed
			}
			if diff := cmp.Diff(want, lines[1].Action); diff != "" || lines[1].Exchange != o.Exchange {
				t.Errorf("the second line (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(ids(lines), r.keeper.ids()); diff != "" {
				t.Errorf("written down:\n%s", diff)
			}
			r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: binance}) // the turn was given back
		})
	}
}

// TestDesk_refusedOrdersHaveNoSecondLine: what was not audited did not fail.
func TestDesk_refusedOrdersHaveNoSecondLine(t *testing.T) {
	r := newRig("b1", nil)
	r.answers.listed = map[market.Pair]bool{}
	if _, err := r.desk.Do(t.Context(), ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc, Reason: "r", Actor: "a"}); err == nil {
		t.Error("a pair that is not listed was withheld")
	}
	if n := len(r.guard.events(market.EventAction)); n != 0 {
		t.Errorf("%d lines in the audit", n)
	}
}

// TestDesk_saysThatOthersHaveNotHeard: while Redis is down an order works here alone, and the answer says so.
func TestDesk_saysThatOthersHaveNotHeard(t *testing.T) {
	r := newRig("b1", nil)
	const words = "Redis did not take it: other gateways hear of it when Redis is back."
	for _, c := range []struct {
		noRedis, broken bool
	}{{false, false}, {true, false}, {false, true}} {
		r.keeper.noRedis, r.keeper.broken = c.noRedis, c.broken
		for _, verb := range []market.Verb{market.VerbIsolate, market.VerbRelease} {
			out := r.do(t, ops.Order{Verb: verb, Exchange: okx})
			if said := strings.Contains(out.Clients, words); said != (c.noRedis || c.broken) {
				t.Errorf("%s, %+v: clients = %q", verb, c, out.Clients)
			}
		}
	}
}

// TestDesk_checksTheList: a pair that the exchange does not list is refused by name, with the one that may be meant. Without
// a list nothing is refused, and a release never is.
func TestDesk_checksTheList(t *testing.T) {
	r := newRig("b1", nil)
	lower := market.Pair{Base: "btc", Quote: "usdt"}
	for _, verb := range []market.Verb{market.VerbWithhold, market.VerbPurge} {
		r.answers.listed = nil
		r.do(t, ops.Order{Verb: verb, Exchange: okx, Pair: lower})
		r.answers.listed = map[market.Pair]bool{btc: true}
		r.do(t, ops.Order{Verb: verb, Exchange: okx, Pair: btc})
		for pair, want := range map[market.Pair]*ops.RefusedError{
			lower: {
				Field: "symbol", Allowed: []string{"BTC/USDT"}, Detail: "There is no btc/usdt at okx: did you mean BTC/USDT?",
			},
			{Base: "BTC", Quote: "EURR"}: {Field: "symbol", Detail: "There is no BTC/EURR at okx."},
		} {
			_, err := r.desk.Do(t.Context(), ops.Order{Verb: verb, Exchange: okx, Pair: pair, Reason: "r", Actor: "a"})
			got, _ := errors.AsType[*ops.RefusedError](err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", verb, diff)
			}
		}
	}
	r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx}) // all of it
	if out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx, Pair: lower}); !out.Changed {
		t.Error("what was withheld without a list cannot be released with one")
	}
}

// TestDesk_aReleaseSaysWhatItLifts: who releases "everything" learns what everything was.
func TestDesk_aReleaseSaysWhatItLifts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx})
		r.do(t, ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc})
		out := r.do(t, ops.Order{Verb: market.VerbRelease, Exchange: okx})
		want := "Lifted: okx isolated until 01:00 UTC (night: wrong prices) and BTC/USDT of okx withheld until 01:00 UTC (night: wrong prices). Requests go to okx again"
		if !strings.HasPrefix(out.Clients, want) {
			t.Errorf("got  %s\nwant %s...", out.Clients, want)
		}
	})
}

// TestBoard_anIsolationThatNobodyFeels tells of no refusal: there was none.
func TestBoard_anIsolationThatNobodyFeels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.answers.lately = map[market.ExchangeID]ops.Lately{okx: {}}
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx})
		if got := r.board.Overview().Exchanges[1]; got.State != ops.StateIsolated || got.Clients != "Nobody asks." {
			t.Errorf("%s: %q", got.State, got.Clients)
		}
	})
}
