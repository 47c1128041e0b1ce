package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

func TestActions_becomeOrders(t *testing.T) {
	until := time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(verb, body string, want ops.Order) {
		t.Helper()
		r := newDeskRig(t)
		w := r.post(verb, body, "Authorization", "Bearer "+r.keys[keys.OpsWrite])
		if w.Code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", verb, body, w.Code, w.Body)
		}
		want.Verb, want.Actor = market.Verb(verb), strings.Split(r.keys[keys.OpsWrite], "_")[1]
		if diff := cmp.Diff(want, r.desk.last()); diff != "" || r.desk.count() != 1 {
			t.Errorf("%s %s, %d orders (-want +got):\n%s", verb, body, r.desk.count(), diff)
		}
	}
	f("isolate", `{"exchange":"okx","reason":" they said so "}`, ops.Order{Exchange: "okx", Reason: "they said so"})
	f("isolate", ` {"exchange":"okx","class":"stream","for":"1h30m","reason":"x"} `+"\n",
		ops.Order{Exchange: "okx", Class: market.ClassStream, For: 90 * time.Minute, Reason: "x"})
	f("isolate", `{"exchange":"okx","until":"2126-01-02T03:04:05Z","reason":"x"}`, ops.Order{Exchange: "okx", Until: until, Reason: "x"})
	f("release", `{"exchange":"okx","symbol":"BTC-USDT","reason":"x"}`, ops.Order{Exchange: "okx", Pair: btc, Reason: "x"})
	f("release", `{"exchange":"okx","class":"account","reason":"x"}`, ops.Order{Exchange: "okx", Class: market.ClassAccount, Reason: "x"})
	f("probe", `{"exchange":"okx","class":"market_data","reason":"x"}`, ops.Order{Exchange: "okx", Class: market.ClassMarketData, Reason: "x"})
	f("withhold", `{"exchange":"okx","symbol":"BTC/USDT","for":"24h","reason":"Fehler im Buch, 价格"}`,
		ops.Order{Exchange: "okx", Pair: btc, For: 24 * time.Hour, Reason: "Fehler im Buch, 价格"})
	f("purge", `{"exchange":"okx","symbol":"BTC/USDT","reason":"x","actor":"who the key says is taken"}`, ops.Order{Exchange: "okx", Pair: btc, Reason: "x"})
	f("reload", `{"reason":"`+strings.Repeat("é", 200)+`"}`, ops.Order{Reason: strings.Repeat("é", 200)})
}

func TestAction_answersTheOutcome(t *testing.T) {
	r := newDeskRig(t)
	until := time.Date(2026, 11, 30, 5, 30, 0, 0, time.UTC)
	r.desk.out = ops.Outcome{
		Verb: market.VerbIsolate, Exchange: "okx", Class: market.ClassStream, Actor: "night", Reason: "x", Event: "boot-7", Changed: true,
		Until: &until, Clients: "Books of okx are served stale.",
	}
	w := r.post("isolate", `{"exchange":"okx","reason":"x"}`, "Authorization", "Bearer "+r.keys[keys.OpsWrite])
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	golden(t, "outcome", w.Body.Bytes())
}

func TestAction_whoActs(t *testing.T) {
	scopes, err := keys.ParseScopes(keys.OpsWrite)
	if err != nil {
		t.Fatal(err)
	}
	f := func(note, want string) {
		t.Helper()
		k, text, err := keys.New(scopes, note, t0)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = k.ID
		}
		r := newDeskRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
		r.post("reload", `{"reason":"x"}`, "X-Api-Key", text.Reveal())
		r.post("reload", `{"reason":"x"}`, "Cookie", r.login(t, text.Reveal()))
		for _, o := range r.desk.orders {
			if o.Actor != want {
				t.Errorf("note %q: actor %q, want %q", note, o.Actor, want)
			}
		}
		if r.desk.count() != 2 {
			t.Errorf("%d orders", r.desk.count())
		}
	}
	f("night shift", "night shift")
	f("", "")
	f("   ", "")
	f(strings.Repeat("ü", 90), strings.Repeat("ü", ops.MaxActor-1)+"…")
}

func TestAction_withoutAnyKeyOnlyThisMachine(t *testing.T) {
	f := func(host string) {
		t.Helper()
		r := newDeskRig(t, keyless)
		req := httptest.NewRequest(http.MethodPost, "/admin/v1/isolate", strings.NewReader(`{"exchange":"okx","reason":"x","actor":" kim "}`))
		req.Host = host
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		if w := serve(r.server.Admin(), req); w.Code != http.StatusOK || r.desk.last().Actor != "local:kim" {
			t.Errorf("%s: %d %s, actor %q", host, w.Code, w.Body, r.desk.last().Actor)
		}
	}
	f("localhost:8081")
	f("LOCALHOST")
	f("127.0.0.1:8081")
	f("127.8.9.10")
	f("[::1]:8081")
	f("[::1]")
	f("[::ffff:127.0.0.1]:8081")

	// A key that may act ends that, a key that may only look does not.
	k, _ := newKey(t, keys.OpsRead)
	r := newDeskRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	if w := r.post("reload", `{"reason":"x","actor":"kim"}`); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAction_theKeysFileIsLost: who could not act with it cannot act without it.
func TestAction_theKeysFileIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	k, text := newKey(t, keys.OpsWrite)
	if err := keys.Append(path, k); err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Open(path, discard())
	if err != nil {
		t.Fatal(err)
	}
	r := newDeskRig(t, func(c *api.Config) { c.Keys = ring })
	cookie := r.login(t, text)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if changed, err := ring.Reload(); err != nil || !changed {
		t.Fatal(changed, err)
	}
	for _, headers := range [][]string{{}, {"X-Api-Key", text}, {"Cookie", cookie}} {
		p := readProblem(t, r.post("isolate", `{"exchange":"okx","reason":"x","actor":"eve"}`, headers...))
		if p.Status != 401 || len(headers) == 0 && !strings.Contains(p.Detail, "gateway key new --scope ops:write") {
			t.Errorf("%d %s", p.Status, p.Detail)
		}
	}
	if s := readStanding(t, r.see("/admin/v1/me")); s.MayAct || s.NeedsName || s.Why == nil || !strings.Contains(*s.Why, "restart the gateway") {
		t.Errorf("%+v", s)
	}
	if r.desk.count() != 0 {
		t.Errorf("%d orders", r.desk.count())
	}
}

// TestAction_needsANameWithoutKeys: a program in a container does not know who runs it, and is told how to say.
func TestAction_needsANameWithoutKeys(t *testing.T) {
	r := newDeskRig(t, keyless)
	p := readProblem(t, r.post("reload", `{"reason":"x"}`))
	if p.Parameter != "actor" || p.Detail != `actor is required while no ops key exists: your name (--as NAME on the command line).` {
		t.Errorf("%+v", p)
	}
}

func TestAction_fromTheGatewaysOwnPage(t *testing.T) {
	r := newDeskRig(t)
	for _, headers := range [][]string{
		{"Origin", "http://" + adminHost, "Sec-Fetch-Site", "same-origin"},
		{"Origin", "http://" + adminHost},
		{"Sec-Fetch-Site", "none"},
		{},
	} {
		before := r.desk.count()
		w := r.post("reload", `{"reason":"x"}`, append(headers, "Cookie", r.login(t, r.keys[keys.OpsWrite]))...)
		if w.Code != http.StatusOK || r.desk.count() != before+1 {
			t.Errorf("%q: %d %s", headers, w.Code, w.Body)
		}
	}
}

func TestAction_refusalsOfTheDesk(t *testing.T) {
	f := func(verb string, err error, status int, code, detail string, retry time.Duration) {
		t.Helper()
		r := newDeskRig(t)
		r.desk.err = err
		w := r.post(verb, `{"exchange":"okx","reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite])
		if verb == "reload" {
			w = r.post(verb, `{"reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite])
		}
		p := readProblem(t, w)
		if w.Code != status || p.Code != code || p.Detail != detail || p.Retryable != (retry > 0) {
			t.Errorf("%v: %d %+v", err, w.Code, p)
		}
		if (p.Exchange == nil) != (verb == "reload") || p.Exchange != nil && *p.Exchange != "okx" {
			t.Errorf("%v: exchange %v", err, p.Exchange)
		}
		if retry > 0 && (*p.RetryAfterMS < retry.Milliseconds() || *p.RetryAfterMS > 2*retry.Milliseconds()+1000) {
			t.Errorf("%v: retry after %d ms, want %v and a bit", err, *p.RetryAfterMS, retry)
		}
	}
	f("probe", &ops.RefusedError{Conflict: true, Wait: 90 * time.Second, Detail: "okx has banned us"}, 409, "refused", "Okx has banned us.", 90*time.Second)
	f("probe", fmt.Errorf("desk: %w", &ops.RefusedError{Conflict: true, Detail: "It is isolated."}), 409, "refused", "It is isolated.", 0)
	f("isolate", &ops.RefusedError{Field: "until", Detail: "Too far away."}, 400, "invalid_parameter", "Too far away.", 0)
	f("reload", errors.New("reload: nothing was changed: gateway.yaml:3:5 unknown key"), 409, "refused", "Reload: nothing was changed: gateway.yaml:3:5 unknown key.", 0)
	f("isolate", errors.New("redis may still hold it"), 503, "action_incomplete", "Redis may still hold it.", time.Second)
}

func TestAction_goesOnWhenItsCallerLeaves(t *testing.T) {
	r := newDeskRig(t)
	ctx, leave := context.WithCancel(t.Context())
	var during error
	r.desk.do = func(ctx context.Context) {
		leave()
		during = ctx.Err()
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/admin/v1/reload", strings.NewReader(`{"reason":"x"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", r.keys[keys.OpsWrite])
	serve(r.server.Admin(), req)
	if during != nil || r.desk.count() != 1 {
		t.Errorf("the desk was told to stop: %v", during)
	}
}

func TestAction_hasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t)
		r.desk.do = func(ctx context.Context) { <-ctx.Done() }
		r.desk.err = context.DeadlineExceeded
		began := time.Now()
		p := readProblem(t, r.post("reload", `{"reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite]))
		if p.Code != "overloaded" || time.Since(began) != 25*time.Second {
			t.Errorf("%+v after %v", p, time.Since(began))
		}
	})
}

// TestAction_passesAFullGateway: a flood of bots must not keep out the one who came to end it; and actions have a bound too.
func TestAction_passesAFullGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t, func(c *api.Config) { c.MaxInFlight = 1 })
		end := make(chan struct{})
		done := make(chan struct{}, 100)
		go func() {
			r.get("/v1/errors")
			done <- struct{}{}
		}()
		r.desk.do = func(context.Context) { <-end }
		for range 64 {
			go func() {
				r.post("reload", `{"reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite])
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		if n := r.desk.count(); n != 64 {
			t.Errorf("%d orders are under way, want 64", n)
		}
		if p := readProblem(t, r.post("reload", `{"reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite])); p.Code != "overloaded" {
			t.Errorf("the 65th: %+v", p)
		}
		close(end)
		for range 65 {
			<-done
		}
	})
}

func TestAction_isCountedAndLoggedEachTime(t *testing.T) {
	r := newDeskRig(t)
	key := r.keys[keys.OpsWrite]
	r.desk.out = ops.Outcome{Changed: true}
	for range 3 {
		r.post("withhold", `{"exchange":"okx","symbol":"BTC/USDT","reason":"why: secret-of-the-night"}`, "X-Api-Key", key)
	}
	r.desk.out = ops.Outcome{}
	r.post("isolate", `{"exchange":"okx","reason":"x"}`, "X-Api-Key", key)
	r.desk.err = &ops.RefusedError{Conflict: true, Detail: "It is isolated."}
	r.post("probe", `{"exchange":"okx","reason":"x"}`, "X-Api-Key", key)
	r.post("probe", `{"exchange":"okx"}`, "X-Api-Key", key)
	r.post("probe", `{"exchange":"okx","reason":"x"}`)
	r.post("probe", `{"exchange":"okx","reason":"x"}`, "X-Api-Key", r.keys[keys.OpsRead])
	r.desk.err = errors.New("the disk is full")
	r.post("purge", `{"exchange":"okx","symbol":"BTC/USDT","reason":"x"}`, "X-Api-Key", key)
	r.desk.do = func(context.Context) { panic("boom") }
	r.post("purge", `{"exchange":"okx","symbol":"BTC/USDT","reason":"x"}`, "X-Api-Key", key)
	f := func(verb, result string, want float64) {
		t.Helper()
		if got := metric(t, r.registry, "gateway_ops_actions_total", "verb", verb, "result", result); got != want {
			t.Errorf("%s %s: %v, want %v", verb, result, got, want)
		}
	}
	f("withhold", "done", 3)
	f("isolate", "unchanged", 1)
	f("probe", "refused", 2)
	f("probe", "denied", 2)
	f("purge", "failed", 2)
	f("release", "done", 0)
	f("reload", "failed", 0)
	log := r.log.String()
	id := strings.Split(key, "_")[1]
	if n := lines(log, "verb=withhold actor="+id+" exchange=okx pair=BTC/USDT"); n != 3 || lines(log, "key_id="+id) < 3 {
		t.Errorf("%d lines of withhold in\n%s", n, log)
	}
	if lines(log, "verb=probe actor="+id) != 1 || lines(log, "verb=purge actor="+id) != 2 || !strings.Contains(log, "the disk is full") {
		t.Errorf("log:\n%s", log)
	}
	if strings.Contains(log, "secret-of-the-night") || strings.Contains(log, key) {
		t.Errorf("the log holds what is for the audit alone:\n%s", log)
	}
	if n := metric(t, r.registry, "gateway_http_requests_total", "route", "action", "method", "POST", "code", "200"); n != 4 {
		t.Errorf("%v good requests", n)
	}
	if n := metric(t, r.registry, "gateway_http_requests_total", "route", "session", "method", "POST", "code", "401"); n != 0 {
		t.Errorf("logins that failed start at %v", n)
	}
}

func TestActions_areOnTheAdminListenerAlone(t *testing.T) {
	r := newDeskRig(t)
	for _, path := range []string{"isolate", "release", "probe", "withhold", "purge", "reload", "session", "session/end", "me"} {
		req := httptest.NewRequest(http.MethodPost, "/admin/v1/"+path, strings.NewReader(`{"exchange":"okx","reason":"x"}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Api-Key", r.keys[keys.OpsWrite])
		if p := readProblem(t, serve(r.server.Public(), req)); p.Code != "not_found" {
			t.Errorf("%s: %s", path, p.Code)
		}
	}
	if r.desk.count() != 0 {
		t.Error("the desk was asked")
	}
}

// What an operator put in force is told to bots with its end, and without who did it.
func TestProblem_ofWhatAnOperatorPutInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fake clock: it begins at midnight of 2000-01-01 UTC
		r := newRig(t)
		f := func(kind market.Kind, left time.Duration, want string) {
			t.Helper()
			r.books.err = &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: kind, RetryAfter: left}
			p := readProblem(t, r.get(bookURL))
			if p.Status != 503 || !strings.Contains(p.Detail, want) {
				t.Errorf("%s: %+v", kind, p)
			}
			at, most := min(max(left, time.Second), 25*time.Second).Milliseconds(), min(left+13*time.Second, 30*time.Second).Milliseconds()
			if *p.RetryAfterMS < at || *p.RetryAfterMS > most { // an operator may end it at any moment
				t.Errorf("%s: retry after %d ms, want %d to %d", kind, *p.RetryAfterMS, at, most)
			}
		}
		f(market.KindIsolated, 45*time.Minute, "An operator isolated the exchange, so it was not asked. It ends by itself at 2000-01-01 00:45:00 UTC at the latest.")
		f(market.KindWithheld, 26*time.Hour, "An operator withheld answers of this exchange, also old ones. It ends by itself at 2000-01-02 02:00:00 UTC at the latest.")
		f(market.KindWithheld, 0, "also old ones.")
		// The second is told in which it ends, though the answer is written a moment after its error, or before by another clock.
		const minute = " It ends by itself at 2000-01-01 00:01:00 UTC"
		f(market.KindIsolated, time.Minute+3*time.Millisecond, minute)
		f(market.KindIsolated, time.Minute-time.Microsecond, minute)
		f(market.KindIsolated, time.Minute-900*time.Millisecond, minute)
	})
}

// outcomeOf is for tests that read an answer.
func outcomeOf(t *testing.T, w *httptest.ResponseRecorder) (o ops.Outcome) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return o
}

func TestAction_saysWhereNothingWasWrittenDown(t *testing.T) {
	r := newDeskRig(t)
	w := r.post("reload", `{"reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite])
	if o := outcomeOf(t, w); o.Recorded == nil || !strings.Contains(w.Body.String(), `"recorded":[]`) {
		t.Errorf("got %s", w.Body)
	}
}
