package notify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/notify"
)

func circuit(from, to market.CircuitState, changes ...func(*market.Event)) market.Event {
	ev := market.Event{
		Boot: "b", Seq: 1, At: time.Now(), Type: market.EventCircuit, From: from, To: to,
		Circuit: market.CircuitID{Exchange: "okx", Class: market.ClassMarketData},
	}
	if to == market.CircuitOpen {
		ev.Cause, ev.Window.Consecutive, ev.Kind = market.CauseConsecutive, 5, market.KindTimeout
	} else {
		ev.Cause = market.CauseProbeSucceeded
	}
	for _, c := range changes {
		c(&ev)
	}
	return ev
}

func opened() market.Event { return circuit(market.CircuitClosed, market.CircuitOpen) }
func closed() market.Event { return circuit(market.CircuitHalfOpen, market.CircuitClosed) }

func gate(scope market.ScopeKind, kind market.Kind, hold time.Duration) market.Event {
	until := time.Now().Add(hold)
	return market.Event{
		Type: market.EventGate, At: time.Now(), Kind: kind, Until: until,
		Gate: market.GateStatus{Exchange: "binance", Scope: market.Scope{Kind: scope, Name: "main"}, Kind: kind, Until: until},
	}
}

func action(reason string) market.Event {
	return market.Event{
		Type: market.EventAction, At: time.Now(), Exchange: "okx",
		Action: market.Action{Verb: market.VerbIsolate, Actor: "night", Reason: reason},
	}
}

func TestWebhook_whatHappensTogetherIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *notify.Config) { c.Dashboard = "https://ops.example.com/?a=1&b=2" })
		r.Notify(opened())
		time.Sleep(2 * time.Second)
		one(t, r.receiver.got(), "gw-1: okx market data: failing, 5 failures in a row (timeout)\nhttps://ops.example.com/?a=1&amp;b=2")
		r.Notify(closed())
		time.Sleep(300 * time.Millisecond)
		r.Notify(action("books are wrong"))
		r.Note("okx: the isolation by night ends at 05:30 UTC (books are wrong)")
		time.Sleep(time.Second)
		one(t, r.receiver.got(), "gw-1: "+
			"\n- okx market data: answers, the probe succeeded"+
			"\n- night: isolate okx (books are wrong)"+
			"\n- okx: the isolation by night ends at 05:30 UTC (books are wrong)"+
			"\nhttps://ops.example.com/?a=1&amp;b=2")
		r.counts(t, 2, 0, 0)
	})
}

func TestWebhook_tellsWhatAPersonWants(t *testing.T) {
	at := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	maintenance := func(from, until time.Time) market.Event {
		return market.Event{Type: market.EventMaintenance, At: at, Maintenance: market.Maintenance{
			Exchange: "okx", From: from, Until: until, Announced: true,
		}}
	}
	none := market.Event{}
	cases := map[string]struct {
		event market.Event
		told  bool
	}{
		"opened":                {opened(), true},
		"closed again":          {closed(), true},
		"probed":                {circuit(market.CircuitOpen, market.CircuitHalfOpen), false},
		"the probe failed":      {circuit(market.CircuitHalfOpen, market.CircuitOpen), false},
		"ban":                   {gate(market.ScopeIP, market.KindBanned, time.Minute), true},
		"short ban":             {gate(market.ScopeIP, market.KindBanned, time.Second), true},
		"restriction":           {gate(market.ScopeExchange, market.KindRestricted, time.Hour), true},
		"refused key":           {gate(market.ScopeAccount, market.KindAuth, time.Minute), true},
		"a limit for two weeks": {gate(market.ScopeIP, market.KindRateLimited, time.Hour), true},
		"a limit":               {gate(market.ScopeIP, market.KindRateLimited, 2*time.Second), false},
		"a pair":                {gate(market.ScopeSymbol, market.KindSuspect, time.Hour), false},
		"an endpoint":           {gate(market.ScopeEndpoint, market.KindRateLimited, time.Hour), false},
		"action":                {action("x"), true},
		"override ended":        {market.Event{Type: market.EventOverride, At: at, Override: market.Override{Exchange: "okx"}}, true},
		"maintenance begins":    {maintenance(at, at.Add(time.Hour)), true},
		"maintenance ended":     {maintenance(at.Add(-time.Hour), at), true},
		"maintenance announced": {maintenance(at.Add(time.Hour), at.Add(2*time.Hour)), false},
		"of a newer gateway":    {none, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.Notify(c.event)
				time.Sleep(3 * time.Second)
				if got := r.receiver.got(); (len(got) == 1) != c.told {
					t.Errorf("messages %q, want one: %v", got, c.told)
				}
			})
		})
	}
}

func TestWebhook_aBanThatIsConfirmedIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.Notify(gate(market.ScopeIP, market.KindBanned, 10*time.Minute))
		time.Sleep(30 * time.Second)
		r.Notify(gate(market.ScopeIP, market.KindBanned, 10*time.Minute))
		time.Sleep(30 * time.Second)
		if got := r.receiver.got(); len(got) != 1 {
			t.Errorf("messages %q, want one", got)
		}
		r.Notify(gate(market.ScopeIP, market.KindBanned, time.Hour)) // far longer
		time.Sleep(2 * time.Hour)
		r.Notify(gate(market.ScopeIP, market.KindBanned, time.Second)) // another one
		time.Sleep(2 * time.Second)
		if got := r.receiver.got(); len(got) != 2 {
			t.Errorf("messages %q, want two", got)
		}
	})
}

func TestWebhook_keepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		for range 3000 { // 5 min of an event every 100 ms
			r.Notify(action("x"))
			time.Sleep(100 * time.Millisecond)
		}
		r.stop()
		times := r.receiver.times
		for i := range times {
			if i > 0 && times[i].Sub(times[i-1]) < time.Second && i < len(times)-1 {
				t.Errorf("two messages within %v", times[i].Sub(times[i-1]))
			}
			if i >= 20 && times[i].Sub(times[i-20]) < time.Minute && i < len(times)-1 {
				t.Errorf("21 messages within %v", times[i].Sub(times[i-20]))
			}
		}
		if len(times) < 95 {
			t.Errorf("%d messages in five minutes, want 20 per minute", len(times))
		}
	})
}

func TestWebhook_foldsACircuitThatFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		for range 12 { // opens and closes in turn for 4 min
			r.Notify(opened())
			time.Sleep(10 * time.Second)
			r.Notify(closed())
			time.Sleep(10 * time.Second)
		}
		r.Notify(opened())
		time.Sleep(time.Minute)
		got := r.receiver.got()
		want := []string{
			"gw-1: okx market data: failing, 5 failures in a row (timeout)", "gw-1: okx market data: answers, the probe succeeded",
			"gw-1: okx market data: failing, 5 failures in a row (timeout)", "gw-1: okx market data: answers, the probe succeeded",
			"gw-1: okx market data: 5 changes in 41 s, now failing",
			"gw-1: okx market data: 12 changes in 2 min, now failing",
			"gw-1: okx market data: 8 changes in 2 min, now failing",
		}
		if !slices.Equal(got, want) {
			t.Errorf("25 changes are told as %q, want %q", got, want)
		}
		time.Sleep(5 * time.Minute)
		if got := r.receiver.got(); len(got) != 0 {
			t.Errorf("messages %q about nothing", got)
		}
		r.Notify(closed()) // it was quiet: told by itself
		time.Sleep(2 * time.Second)
		one(t, r.receiver.got(), "gw-1: okx market data: answers, the probe succeeded")
	})
}

func TestWebhook_isBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		for i := range 230 {
			r.Note(fmt.Sprintf("note %d", i))
		}
		time.Sleep(2 * time.Second)
		got := r.receiver.got()
		if len(got) != 1 || !strings.HasPrefix(got[0], "gw-1: \n- note 30\n- note 31\n") ||
			!strings.HasSuffix(got[0], "- note 39\nand 190 more\n30 earlier ones were left out") {
			t.Errorf("messages %q", got)
		}
		r.counts(t, 1, 0, 30)
	})
}

func TestWebhook_whatPeopleTypeStaysText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.Notify(action("<!channel> a & b\ngw-1: okx is fine\u2028@all " + strings.Repeat("x", 500) + "\xff"))
		time.Sleep(2 * time.Second)
		got := r.receiver.got()
		if len(got) != 1 || strings.ContainsAny(got[0], "<>\n\u2028") || strings.Contains(got[0], "@all") ||
			!strings.HasPrefix(got[0], "gw-1: night: isolate okx (&lt;!channel&gt; a &amp; b gw-1: okx is fine @\u200ball xxx") ||
			!strings.HasSuffix(got[0], "…") || len([]rune(got[0])) > 450 {
			t.Errorf("messages %q", got)
		}
	})
}

func TestWebhook_triesAgain(t *testing.T) {
	down := func(context.Context, int) (*http.Response, error) { return nil, errors.New("not-a-secret: reset") }
	answer := func(code int, header ...string) func(context.Context, int) (*http.Response, error) {
		return func(context.Context, int) (*http.Response, error) { return status(code, header...), nil }
	}
	cases := map[string]struct {
		answer   func(context.Context, int) (*http.Response, error)
		requests int
		took     time.Duration // from the first to the last
	}{
		"down":          {down, 3, 6 * time.Second},
		"502":           {answer(502), 3, 6 * time.Second},
		"429":           {answer(429), 3, 6 * time.Second},
		"429 and when":  {answer(429, "Retry-After", "30"), 3, time.Minute},
		"503 for a day": {answer(503, "Retry-After", "86400"), 3, 2 * time.Hour},
		"400":           {answer(400), 1, 0},
		"404":           {answer(404, "Retry-After", "1"), 1, 0},
		"a redirect":    {answer(307, "Location", "https://elsewhere.example.com/"), 1, 0},
		"hangs": {func(ctx context.Context, _ int) (*http.Response, error) {
			<-ctx.Done()
			return nil, &url.Error{Op: "Post", URL: address, Err: ctx.Err()}
		}, 3, 16 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.receiver.answer = c.answer
				r.Notify(opened())
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				times := r.receiver.times
				if len(times) != c.requests || times[len(times)-1].Sub(times[0]) != c.took {
					t.Errorf("asked at %v, want %d times within %v", times, c.requests, c.took)
				}
				r.counts(t, 0, 1, 0)

				r.receiver.answer = nil
				r.Notify(closed())
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				r.counts(t, 1, 1, 0)
				if log := r.log.String(); strings.Count(log, "notification not delivered") != 1 ||
					strings.Count(log, "notifications are delivered again") != 1 {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}

func TestWebhook_aSecondTryDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.receiver.answer = func(_ context.Context, n int) (*http.Response, error) {
			if n == 1 {
				return status(500), nil
			}
			return status(204), nil
		}
		r.Notify(opened())
		time.Sleep(500 * time.Millisecond)
		r.Note("meanwhile")
		time.Sleep(10 * time.Second)
		if got := r.receiver.got(); len(got) != 2 || got[0] != got[1] {
			t.Errorf("messages %q, want the same twice", got)
		}
		r.counts(t, 1, 0, 0)
	})
}

func TestWebhook_aStopTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.Notify(opened())
		synctest.Wait()
		if took := r.stop(); took != 0 {
			t.Errorf("stopped after %v", took)
		}
		one(t, r.receiver.got(), "gw-1: okx market data: failing, 5 failures in a row (timeout)")
		r.counts(t, 1, 0, 0)
	})
}

func TestWebhook_aStopWaitsTwoSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.receiver.answer = func(ctx context.Context, _ int) (*http.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r.Notify(opened())
		time.Sleep(1500 * time.Millisecond) // the request is under way
		r.Note("later")
		if took := r.stop(); took != 2*time.Second {
			t.Errorf("stopped after %v, want 2s", took)
		}
		r.counts(t, 0, 2, 0)
	})
}

func TestWebhook_withoutAnAddressTellsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *notify.Config) { c.URL = market.Secret{} })
		for range 300 {
			r.Notify(opened())
			r.Note("x")
		}
		time.Sleep(time.Minute)
		r.counts(t, 0, 0, 0)
		if took := r.stop(); took != 0 || len(r.receiver.got()) != 0 {
			t.Errorf("stopped after %v, %d requests", took, len(r.receiver.got()))
		}
	})
}

func TestNew_refusesWhatIsNoAddress(t *testing.T) {
	for _, text := range []string{
		"hooks.example.com/not-a-secret", "ftp://hooks.example.com/not-a-secret", "https:///not-a-secret", "http://a b/not-a-secret",
	} {
		_, err := notify.New(notify.Config{URL: market.NewSecret(text), Log: slog.New(slog.DiscardHandler)})
		if err == nil || strings.Contains(err.Error(), "not-a-secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A receiver that takes connections and never answers, on a real socket: nobody waits for it but Run.
func TestWebhook_aSocketThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reg := prometheus.NewRegistry()
	w, err := notify.New(notify.Config{
		URL: market.NewSecret("http://" + l.Addr().String() + "/not-a-secret"), Log: slog.New(slog.DiscardHandler), Metrics: reg,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.Note("hello")
	c, err := l.Accept() // the request is under way
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 1000 {
		w.Note("more") // does not block: the test would not end
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second): // two seconds, on a machine with nothing else to do
		t.Error("a stop waits for the receiver")
	}
}

// Over a real server: the body is what Slack documents, and a redirect is not followed.
func TestWebhook_overHTTP(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	bodies := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		bodies <- string(body)
		http.Redirect(rw, req, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	w, err := notify.New(notify.Config{URL: market.NewSecret(server.URL), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.Note("a < b")
	if got, want := <-bodies, `{"text":"a &lt; b"}`+"\n"; got != want {
		t.Errorf("body %q, want %q", got, want)
	}
	cancel()
	<-ended
}

func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{
		"", "30", "-1", "1e9", "99999999999999999999", "Mon, 30 Nov 2026 00:01:00 GMT", "Mon, 30 Nov 0000 00:01:00 GMT",
	} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if d := notify.RetryAfter(text, now); d < 0 || d > time.Hour {
			t.Errorf("%q is %v", text, d)
		}
	})
}
