package ops_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestBoard_headlineNamesEveryExchangeThatIsNotWell, the worst for clients first; what nobody wanted before what an operator
// put in force.
func TestBoard_headlineNamesEveryExchangeThatIsNotWell(t *testing.T) {
	const (
		withheld = "Books, prices, 24 h statistics and balances answer 503 withheld."
		stale    = "Books are served stale; balances answer 503 isolated."
	)
	act := func(r *rig, verb market.Verb, id market.ExchangeID, change ...func(*ops.Order)) {
		o := ops.Order{Verb: verb, Exchange: id}
		for _, c := range change {
			c(&o)
		}
		r.do(t, o)
	}
	pair := func(base string) func(*ops.Order) {
		return func(o *ops.Order) { o.Pair = market.Pair{Base: base, Quote: "USDT"} }
	}
	open := func(r *rig, id market.ExchangeID, class market.Class) {
		r.set(id, class, func(st *market.CircuitStatus) { st.State, st.Since = market.CircuitOpen, time.Now() })
	}
	for name, c := range map[string]struct {
		make  func(*rig)
		level ops.Level
		want  string
	}{
		"withheld is worse than isolated": {func(r *rig) {
			act(r, market.VerbIsolate, binance)
			act(r, market.VerbWithhold, okx)
			open(r, binance, market.ClassStream) // isolated, so nobody's trouble
		}, ops.LevelDown, "No exchange answers. okx: all of it is withheld until 01:00 UTC by night: wrong prices. " + withheld + " Also binance is isolated."},
		"in either order": {func(r *rig) {
			act(r, market.VerbIsolate, okx, func(o *ops.Order) { o.Class = market.ClassAccount })
			act(r, market.VerbWithhold, binance)
		}, ops.LevelNotice, "binance: all of it is withheld until 01:00 UTC by night: wrong prices. " + withheld + " Also okx account is isolated."},
		"isolated is worse than pairs withheld": {func(r *rig) {
			act(r, market.VerbWithhold, binance, pair("A"))
			act(r, market.VerbWithhold, binance, pair("B"))
			act(r, market.VerbIsolate, okx)
		}, ops.LevelNotice, "okx: all of it is isolated until 01:00 UTC by night: wrong prices. " + stale + " Also 2 pairs of binance are withheld."},
		"trouble that nobody wanted comes first": {func(r *rig) {
			act(r, market.VerbWithhold, binance)
			open(r, okx, market.ClassMarketData)
		}, ops.LevelDown, "No exchange answers. okx: market data failing for under 1 s. Books are served stale. Also binance is withheld."},
		"both on one exchange": {func(r *rig) {
			act(r, market.VerbIsolate, okx)
			act(r, market.VerbWithhold, okx)
		}, ops.LevelNotice, "okx: all of it is isolated until 01:00 UTC by night: wrong prices. " +
			"Besides, all of it is withheld until 01:00 UTC by night: wrong prices. " + withheld},
		"a pair of an exchange in trouble": {func(r *rig) {
			act(r, market.VerbWithhold, okx, pair("BTC"))
			open(r, okx, market.ClassAccount)
		}, ops.LevelDegraded, "okx: account failing for under 1 s. Besides, BTC/USDT is withheld until 01:00 UTC by night: wrong prices. " +
			"The withheld pairs answer 503 withheld; balances are refused."},
		"limited, and in maintenance": {func(r *rig) {
			act(r, market.VerbIsolate, binance)
			r.guard.gates = []market.GateStatus{{
				Exchange: okx, Scope: market.Scope{Kind: market.ScopeSymbol, Name: "A-B"}, Kind: market.KindSuspect, Until: time.Now().Add(time.Minute),
			}}
		}, ops.LevelNotice, "binance: all of it is isolated until 01:00 UTC by night: wrong prices. " + stale + " Also okx is limited."},
		"everything is withheld": {func(r *rig) {
			act(r, market.VerbWithhold, binance)
			act(r, market.VerbWithhold, okx)
		}, ops.LevelDown, "No exchange answers. binance: all of it is withheld until 01:00 UTC by night: wrong prices. " + withheld + " Also okx is withheld."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig("b1", nil)
				c.make(r)
				if o := r.board.Overview(); o.Headline != c.want || o.Level != c.level {
					t.Errorf("got  %s %s\nwant %s %s", o.Level, o.Headline, c.level, c.want)
				}
			})
		})
	}
}

// TestBoard_saysTheSecond in which what is near ends, across midnight too.
func TestBoard_saysTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		time.Sleep(24*time.Hour - 30*time.Second)
		r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: 71 * time.Second})
		want := "All of it is isolated until 00:00:41 UTC by night: wrong prices."
		if got := r.board.Overview().Exchanges[1].Why; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
