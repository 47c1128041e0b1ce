package exchangesim_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

// follower keeps a book by Binance's procedure and knows what is wrong with what it is sent.
type follower struct {
	t    *testing.T
	sim  *exchangesim.Sim
	v    *exchangesim.Venue
	rt   http.RoundTripper
	ws   *streamClient
	id   int64
	book ledger
}

// follow starts a stream of a symbol's diffs and loads the book.
func follow(t *testing.T, v *exchangesim.Venue, rt http.RoundTripper, symbol string) *follower {
	t.Helper()
	f := &follower{t: t, v: v, rt: rt, ws: dialStream(t, rt, binanceWS+"/stream?streams="+strings.ToLower(symbol)+"@depth@100ms")}
	f.ws.want(`"depthUpdate"`, time.Minute)
	f.id, f.book = snapshot(t, rt, symbol)
	return f
}

// verdict says what one event was to the follower.
type verdict string

const (
	right   verdict = "right"   // next, and then the book of its sequence
	old     verdict = "old"     // known already
	gap     verdict = "gap"     // something is missing before it
	crossed verdict = "crossed" // next, but the book then has its best bid above its best ask
	broken  verdict = "broken"  // not JSON
)

// next judges the next event, and applies it if it is the next one.
func (f *follower) next(within time.Duration) verdict {
	f.t.Helper()
	m, ok := f.ws.next(within)
	if !ok {
		f.t.Fatalf("no event within %v", within)
	}
	return f.judge(m)
}

func (f *follower) judge(m string) verdict {
	f.t.Helper()
	if !strings.HasSuffix(m, "}}") {
		return broken
	}
	e := parse[depthEvent](f.t, m)
	switch {
	case e.Data.Last <= f.id:
		return old
	case e.Data.First > f.id+1:
		return gap
	}
	f.book.apply(e)
	f.id = e.Data.Last
	if f.book.equal(truthBySeq(f.t, f.v, e.Data.Sym, f.id)) {
		return right
	}
	return crossed
}

// upToDate reads events until the book is right and no more is waiting.
func (f *follower) upToDate() {
	f.t.Helper()
	for {
		m, ok := f.ws.next(time.Millisecond)
		if !ok {
			return
		}
		if got := f.judge(m); got != right && got != old {
			f.t.Fatalf("an event is %s", got)
		}
	}
}

// want judges the next events.
func (f *follower) want(verdicts ...verdict) {
	f.t.Helper()
	for i, want := range verdicts {
		if got := f.next(time.Second); got != want {
			f.t.Fatalf("event %d is %s, want %s", i+1, got, want)
		}
	}
}

// faultStage runs a test on two streams of two symbols in a bubble.
func faultStage(t *testing.T, test func(t *testing.T, v *exchangesim.Venue, btc, eth *follower)) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Seed: 7, Instruments: map[string][]exchangesim.Instrument{"binance": {
			{Symbol: "BTCUSDT", Base: "BTC", Quote: "USDT", Tick: "0.01", Lot: "0.00001", Price: "64000", Size: "0.4", Gap: 3, Levels: 60},
			{Symbol: "ETHUSDT", Base: "ETH", Quote: "USDT", Tick: "0.01", Lot: "0.0001", Price: "3200", Size: "5", Levels: 60},
		}}})
		v, tr := sim.Venue("binance"), piped(t, sim, "binance")
		btc, eth := follow(t, v, tr, "BTCUSDT"), follow(t, v, tr, "ETHUSDT")
		btc.sim, eth.sim = sim, sim
		btc.upToDate()
		eth.upToDate()
		test(t, v, btc, eth)
	})
}

// TestStreamFault_messages: faults of single messages meet as many as asked, of the symbol asked, and nothing afterwards.
func TestStreamFault_messages(t *testing.T) {
	for _, c := range []struct {
		fault exchangesim.Fault
		want  []verdict
	}{
		{exchangesim.Fault{Kind: exchangesim.FaultGap, Symbol: "BTCUSDT", Count: 3}, []verdict{gap, gap}},
		{exchangesim.Fault{Kind: exchangesim.FaultDuplicate, Symbol: "BTCUSDT", Count: 2}, []verdict{right, old, right, old, right, right}},
		{exchangesim.Fault{Kind: exchangesim.FaultReorder, Symbol: "BTCUSDT", Count: 1}, []verdict{gap, right, gap, gap}},
		{exchangesim.Fault{Kind: exchangesim.FaultMalformed, Class: exchangesim.ClassStream, Symbol: "BTCUSDT", Count: 1}, []verdict{broken, gap}},
		{exchangesim.Fault{Kind: exchangesim.FaultCrossed, Class: exchangesim.ClassStream, Symbol: "BTCUSDT", Count: 1}, []verdict{crossed}},
	} {
		t.Run(string(c.fault.Kind), func(t *testing.T) {
			faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, eth *follower) {
				inject(t, v, c.fault)
				btc.want(c.want...)
				eth.want(right, right, right, right)
				if n := v.Stats().ByFault[string(c.fault.Kind)]; n != c.fault.Count {
					t.Errorf("counted %d, want %d", n, c.fault.Count)
				}
				if c.fault.Kind == exchangesim.FaultCrossed && !isCrossed(btc.book, v, btc.id) {
					t.Error("not crossed")
				}
				btc.id, btc.book = snapshot(t, btc.rt, "BTCUSDT")
				btc.upToDate()
				btc.want(right, right, right)
			})
		})
	}
}

// isCrossed reports whether the book holds a bid right above the best ask of the truth.
func isCrossed(l ledger, v *exchangesim.Venue, id int64) bool {
	b, err := v.BookBySeq("BTCUSDT", id, 2)
	if err != nil || len(b.Asks) == 0 {
		return false
	}
	for price := range l.bids {
		if len(price) == len(b.Asks[0].Price) && price > b.Asks[0].Price {
			return true
		}
	}
	return false
}

// TestStreamFault_freeze: one symbol stands still, the other goes on, and nothing is lost.
func TestStreamFault_freeze(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, eth *follower) {
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: "BTCUSDT", For: time.Minute})
		btc.ws.silence(time.Minute - time.Millisecond)
		for range 599 {
			eth.want(right)
		}
		before := btc.id
		btc.want(right, right)
		if btc.id-before < 2000 {
			t.Errorf("a minute was made up for with %d numbers", btc.id-before)
		}
	})
}

// TestStreamFault_silent: nothing comes, no pong either, while the connection stays open and what was sent to it waits.
func TestStreamFault_silent(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, eth *follower) {
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultSilent, For: 2 * time.Minute, Count: 1})
		time.Sleep(time.Minute)
		quiet, loud := btc, eth
		if _, ok := btc.ws.next(time.Millisecond); ok { // which of the two was met is a matter of luck
			quiet, loud = eth, btc
			btc.id, btc.book = snapshot(t, btc.rt, "BTCUSDT")
		}
		quiet.ws.silence(time.Millisecond)
		loud.upToDate()
		quiet.ws.send(`{"method":"LIST_SUBSCRIPTIONS","id":1}`)
		pong := make(chan error, 1)
		start := time.Now()
		go func() { pong <- quiet.ws.conn.Ping(t.Context()) }()
		quiet.ws.silence(59 * time.Second)
		quiet.ws.want(`usdt@depth@100ms"],"id":1}`, 2*time.Second)
		if err := <-pong; err != nil || time.Since(start) < 59*time.Second {
			t.Errorf("pong after %v, %v", time.Since(start), err)
		}
		quiet.want(right, right)
		loud.upToDate()
		if f := v.Faults(); len(f) != 0 {
			t.Errorf("still in force: %+v", f)
		}
	})
}

// TestStreamFault_halfOpen: streams that are open go dead, new ones live, and the dead ones are reset at the end.
func TestStreamFault_halfOpen(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, _ *follower) {
		id := inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultHalfOpen})
		btc.ws.silence(10 * time.Second)
		fresh := follow(t, v, btc.rt, "BTCUSDT")
		fresh.upToDate()
		fresh.want(right)
		ctx, cancel := contextWithTimeout(t, 5*time.Second)
		defer cancel()
		first := btc.ws.conn.Write(ctx, websocket.MessageText, []byte(`{}`)) // in the pipe already
		if second := btc.ws.conn.Write(ctx, websocket.MessageText, []byte(`{}`)); first != nil || second == nil {
			t.Errorf("writes: %v, then %v; want the second to hang", first, second)
		}
		v.Remove(id)
		if code, _ := btc.ws.ended(time.Second); code != -1 {
			t.Errorf("closed with %d, want a reset", code)
		}
		fresh.want(right)
	})
}

// TestStreamFault_storm: all streams are cut at once and each new one a second after its start, until the storm is over.
func TestStreamFault_storm(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, eth *follower) {
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultStorm, For: 10 * time.Second, Latency: 1500 * time.Millisecond})
		for _, f := range []*follower{btc, eth} {
			if code, _ := f.ws.ended(time.Millisecond); code != -1 {
				t.Errorf("closed with %d", code)
			}
		}
		start := time.Now()
		dialStream(t, btc.rt, binanceWS+"/stream").ended(time.Minute)
		if d := time.Since(start); d != 1500*time.Millisecond {
			t.Errorf("a new stream lived for %v", d)
		}
		time.Sleep(time.Until(start.Add(9 * time.Second)))
		last := follow(t, v, btc.rt, "BTCUSDT") // it outlives the storm
		time.Sleep(time.Minute)
		last.upToDate()
	})
}

// TestStreamFault_cut: the venue's notice, then the close, and new streams stay.
func TestStreamFault_cut(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, _ *follower) {
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultCut})
		start := time.Now()
		btc.ws.want(`{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":946684`, time.Millisecond)
		fresh := follow(t, v, btc.rt, "BTCUSDT")
		if code, _ := btc.ws.ended(time.Minute); code != websocket.StatusGoingAway || time.Since(start) != 10*time.Second {
			t.Errorf("closed with %d after %v", code, time.Since(start))
		}
		time.Sleep(time.Minute)
		fresh.upToDate()
	})
}

// TestStreamFault_venue: trouble of the whole venue refuses handshakes; some of it ends or silences the streams that are open.
func TestStreamFault_venue(t *testing.T) {
	for _, c := range []struct {
		kind   exchangesim.FaultKind
		status int // of a handshake; 0: none comes
		after  string
	}{
		{exchangesim.FaultMaintenance, 503, "closed"},
		{exchangesim.FaultUnavailable, 503, "closed"},
		{exchangesim.FaultReset, 0, "cut"},
		{exchangesim.FaultClose, 0, "cut"},
		{exchangesim.FaultHang, 0, "silent"},
		{exchangesim.FaultRateLimit, 429, "open"},
		{exchangesim.FaultBan, 418, "open"},
		{exchangesim.FaultGeoBlock, 451, "open"},
		{exchangesim.FaultEmpty, 200, "open"},
	} {
		for _, class := range []string{"", exchangesim.ClassStream} {
			t.Run(string(c.kind)+class, func(t *testing.T) {
				faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, _ *follower) {
					id := inject(t, v, exchangesim.Fault{Kind: c.kind, Class: class})
					switch c.after {
					case "silent":
						btc.ws.silence(30 * time.Second)
					case "open":
						btc.want(right, right, right)
					default:
						if code, _ := btc.ws.ended(time.Millisecond); (code == -1) != (c.after == "cut") {
							t.Errorf("ended with %d", code)
						}
					}
					ctx, cancel := contextWithTimeout(t, 5*time.Second)
					defer cancel()
					_, res, err := websocket.Dial(ctx, binanceWS+"/stream", &websocket.DialOptions{HTTPClient: &http.Client{Transport: btc.rt}})
					if status := 0; err == nil || (res != nil && res.StatusCode != c.status) || (res == nil && c.status != status) {
						t.Errorf("handshake: %v %v", res, err)
					}
					rest := client{t: t, http: &http.Client{Transport: btc.rt, Timeout: 5 * time.Second}, base: "http://api.binance.com"}.get("/api/v3/ping")
					if touched := rest.err != nil || rest.status != 200 || rest.body != "{}"; touched != (class == "") {
						t.Errorf("REST with class %q: %d %v", class, rest.status, rest.err)
					}
					v.Remove(id)
					follow(t, v, btc.rt, "BTCUSDT").want(right)
					if c.after == "silent" {
						btc.want(right)
					}
				})
			})
		}
	}
}

// TestStreamFault_bounds: a fault of another class or with a count leaves open streams alone, and one that could do nothing is refused.
func TestStreamFault_bounds(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, _ *follower) {
		for _, f := range []exchangesim.Fault{
			{Kind: exchangesim.FaultReset, Class: exchangesim.ClassMarketData},
			{Kind: exchangesim.FaultMaintenance, Path: "/api"},
			{Kind: exchangesim.FaultHang, Count: 1},
			{Kind: exchangesim.FaultHangBody},
			{Kind: exchangesim.FaultSilent, Path: "/ws/"},
			{Kind: exchangesim.FaultGap, Symbol: "SOLUSDT"},
			{Kind: exchangesim.FaultCrossed, Class: exchangesim.ClassMarketData},
		} {
			inject(t, v, f)
		}
		btc.want(right, right, right, right)
		for _, f := range []exchangesim.Fault{
			{Kind: exchangesim.FaultGap, Class: exchangesim.ClassMarketData},
			{Kind: exchangesim.FaultOlder, Class: exchangesim.ClassStream},
			{Kind: exchangesim.FaultCutJSON, Class: exchangesim.ClassStream},
			{Kind: exchangesim.FaultStorm, Credential: "main"},
			{Kind: exchangesim.FaultLostReset},
		} {
			if id, err := v.Inject(f); err == nil {
				t.Errorf("%s of class %q was taken as %d", f.Kind, f.Class, id)
			}
		}
	})
}

// TestStreamFault_share: a share of the connections is drawn from a seed, the same one for the same seed.
func TestStreamFault_share(t *testing.T) {
	silent := func() (out [40]bool) {
		synctest.Test(t, func(t *testing.T) {
			sim := newSim(t, exchangesim.Config{Seed: 7})
			v, tr := sim.Venue("binance"), piped(t, sim, "binance")
			var streams [40]*streamClient
			for i := range streams {
				streams[i] = dialStream(t, tr, binanceWS+"/ws/btcusdt@bookTicker")
			}
			inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultSilent, Percent: 50, Seed: 11})
			time.Sleep(5 * time.Second)
			for i, ws := range streams {
				_, ok := ws.next(time.Millisecond)
				out[i] = !ok
			}
		})
		return out
	}
	first, n := silent(), 0
	for _, s := range first {
		if s {
			n++
		}
	}
	if n < 12 || n > 28 || first != silent() {
		t.Errorf("%d of 40 are silent", n)
	}
}

// TestStreamFault_skew: the numbers of the stream and of REST follow one clock, which can be off.
func TestStreamFault_skew(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, _ *follower) {
		was := btc.id
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultSkew, Skew: time.Hour})
		btc.want(right, right)
		id, _ := snapshot(t, btc.rt, "BTCUSDT")
		if id != btc.id || id-was < 140_000 {
			t.Errorf("stream %d, REST %d, an hour before %d", btc.id, id, was)
		}
	})
}

// TestStreamFault_control drives faults of streams from the control endpoint and from a schedule.
func TestStreamFault_control(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	for body, want := range map[string]int{
		`{"kind":"silent","class":"stream","for":"30s","percent":50,"seed":3}`: 200,
		`{"kind":"refuse_subscription","symbol":"BTCUSDT","count":2}`:          200,
		`{"kind":"reset_sequence"}`:                                            400, // OKX alone
		`{"kind":"gap","class":"reference"}`:                                   400,
		`{"kind":"one_sided","class":"stream"}`:                                400,
	} {
		if code, answer := command(t, sim, "POST", "/v1/faults/binance", body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if code, answer := command(t, sim, "POST", "/v1/faults/okx", `{"kind":"reset_sequence","symbol":"BTC-USDT"}`); code != 200 || len(sim.Venue("okx").Faults()) != 0 {
		t.Errorf("it happens at once and is over: %d %s", code, answer)
	}
	if n := sim.Venue("okx").Stats().ByFault["reset_sequence"]; n != 1 {
		t.Errorf("counted %d", n)
	}
	if code, _ := command(t, sim, "POST", "/v1/schedule", `{"steps":[{"venue":"coinbase","fault":{"kind":"lost_reset"}}]}`); code != 400 {
		t.Errorf("a schedule with what the venue does not do: %d", code)
	}
	if _, body := command(t, sim, "GET", "/v1/stats/binance", ""); !strings.Contains(body, `"streams":{"open":0,"opened":0,"in":0,"out":0,"subscriptions":0,"subscribed":{}}`) {
		t.Errorf("%.400s", body)
	}
}

// TestStreamFault_schedule: a schedule puts a fault of streams in force and takes it away again.
func TestStreamFault_schedule(t *testing.T) {
	faultStage(t, func(t *testing.T, v *exchangesim.Venue, btc, eth *follower) {
		err := btc.sim.StartSchedule(exchangesim.Schedule{Steps: []exchangesim.Step{{
			After: 10 * time.Second, For: 20 * time.Second, Venue: "binance", Fault: &exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: "BTCUSDT"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		btc.upToDate()
		btc.ws.silence(20*time.Second - 2*time.Millisecond)
		btc.want(right, right)
		eth.upToDate()
	})
}
