package ops_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// asks are the questions that were put to exchanges.
func (r *rig) asks() (out []string) {
	for _, line := range r.tape.take() {
		if strings.HasPrefix(line, "ask ") {
			out = append(out, line)
		}
	}
	return out
}

// TestBoard_probesForThoseWhoAttend: an open circuit of market or reference data whose time is over is asked once, for one who may
// have it asked; never for another, never while an answer is waited for, and never through a hold or an isolation.
func TestBoard_probesForThoseWhoAttend(t *testing.T) {
	due := func(classes ...market.Class) func(*rig) {
		return func(r *rig) {
			for _, class := range classes {
				r.set(okx, class, func(st *market.CircuitStatus) {
					st.State, st.ProbeDue, st.OpenUntil = market.CircuitOpen, true, time.Now().Add(-time.Second)
				})
			}
		}
	}
	hold := func(kind market.ScopeKind) func(*rig) {
		return func(r *rig) {
			due(market.ClassMarketData)(r)
			r.guard.gates = []market.GateStatus{{
				Exchange: okx, Scope: market.Scope{Kind: kind}, Kind: market.KindRateLimited, Until: time.Now().Add(time.Hour),
			}}
		}
	}
	for name, c := range map[string]struct {
		make   func(*rig)
		attend bool
		want   string
	}{
		"market data":       {due(market.ClassMarketData), true, "ask okx/market_data"},
		"reference":         {due(market.ClassReference), true, "ask okx/reference"},
		"nobody attends":    {due(market.ClassMarketData, market.ClassReference), false, ""},
		"accounts, streams": {due(market.ClassAccount, market.ClassStream), true, ""},
		"all is well":       {func(*rig) {}, true, ""},
		"a ban":             {hold(market.ScopeIP), true, ""},
		"a hold":            {hold(market.ScopePublic), true, ""},
		"a hold of a pair":  {hold(market.ScopeSymbol), true, "ask okx/market_data"},
		"not due yet": {func(r *rig) {
			r.set(okx, market.ClassMarketData, func(st *market.CircuitStatus) {
				st.State, st.OpenUntil = market.CircuitOpen, time.Now().Add(time.Hour)
			})
		}, true, ""},
		"an isolation": {func(r *rig) {
			due(market.ClassMarketData, market.ClassReference)(r)
			r.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "r", Actor: "night"})
		}, true, ""},
		"an isolation of another class": {func(r *rig) {
			due(market.ClassMarketData)(r)
			r.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassReference, Reason: "r", Actor: "night"})
		}, true, "ask okx/market_data"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig("b1", nil)
				r.answers.ask = func(ctx context.Context) { <-ctx.Done() } // it does not answer
				c.make(r)
				stop := r.run(t)
				defer stop()
				w := watch(t, r.board, "")
				defer w.Close()
				if c.attend {
					w.Attend()
				}
				time.Sleep(4 * time.Second) // less than one question may take
				if got := strings.Join(r.asks(), ","); got != c.want {
					t.Errorf("asked %q, want %q", got, c.want)
				}
				w.Close()
				time.Sleep(time.Minute)
				if got := r.asks(); len(got) > 0 {
					t.Errorf("with nobody watching: %q", got)
				}
			})
		})
	}
}

// TestLife_idleAfterAnOutage: an exchange recovers and nobody asks. Who watches sees it by a probe at the circuit's own pace, one
// request a time; with nobody watching nothing is asked, and what is shown is that nobody asks.
func TestLife_idleAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, t.TempDir())
		defer l.end(t)
		down := &market.Error{Exchange: okx, Op: market.OpOrderBook, Kind: market.KindMalformed}
		for range 6 {
			l.ask(t, down)
			time.Sleep(time.Second)
		}
		var up atomic.Bool
		var count atomic.Int64
		l.answers.ask = func(context.Context) {
			answer := error(down)
			if up.Load() {
				answer = nil
			}
			if _, sent := l.ask(t, answer); sent {
				count.Add(1)
			}
		}
		l.answers.lately = map[market.ExchangeID]ops.Lately{okx: {AskedAt: time.Now()}}
		time.Sleep(11 * time.Minute)
		if x, asked := l.board.Overview().Exchanges[0], count.Load(); asked != 0 || x.State != ops.StateNotAsked || x.Level != ops.LevelOK ||
			!strings.HasPrefix(x.Why, "Not asked since 00:00 UTC") || x.Answering.Status != ops.AnsweringNotAsked {
			t.Errorf("asked %d times by nobody; %s, %s: %s", asked, x.State, x.Level, x.Why)
		}
		w := watch(t, l.board, "")
		defer w.Close()
		w.Attend()
		read := make(chan struct{})
		go func() {
			defer close(read)
			for {
				if _, err := w.Next(t.Context()); err != nil {
					return
				}
			}
		}()
		time.Sleep(5 * time.Minute)
		// 10, 20, 40, 60 s and so on, each a fifth shorter at most, and up to a second until the watcher's next look.
		if asked := count.Load(); asked < 6 || asked > 9 {
			t.Errorf("a failing exchange was asked %d times in 5 min", asked)
		}
		up.Store(true)
		count.Store(0)
		time.Sleep(62 * time.Second)
		if st, asked := l.guard.Circuits()[0], count.Load(); asked != 1 || st.State != market.CircuitClosed {
			t.Errorf("recovered: asked %d times, the circuit is %s", asked, st.State)
		}
		time.Sleep(10 * time.Minute)
		if asked := count.Load(); asked != 1 {
			t.Errorf("a closed circuit was asked %d times", asked-1)
		}
		w.Close()
		<-read
	})
}
