package market_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
)

var eventAt = time.Date(2026, 11, 29, 2, 0, 0, 123e6, time.UTC)

// examples has one event of each type.
func examples() []market.Event {
	btc := market.Pair{Base: "BTC", Quote: "USDT"}
	base := func(t market.EventType) market.Event {
		return market.Event{Boot: "1f2e3d", Seq: 7, At: eventAt, Type: t, Until: eventAt.Add(time.Minute)}
	}
	circuit, gate, action, override, maintenance := base(market.EventCircuit), base(market.EventGate), base(market.EventAction),
		base(market.EventOverride), base(market.EventMaintenance)
	circuit.Circuit = market.CircuitID{Exchange: "okx", Class: market.ClassMarketData, Family: "v5"}
	circuit.From, circuit.To, circuit.Cause = market.CircuitClosed, market.CircuitOpen, market.CauseConsecutive
	circuit.Window, circuit.Kind = market.Window{Settled: 9, Failures: 6, Slow: 1, Consecutive: 5}, market.KindTimeout
	gate.Kind = market.KindBanned
	gate.Gate = market.GateStatus{Exchange: "binance", Scope: market.Scope{Kind: market.ScopeEndpoint, Name: "books"}, Kind: gate.Kind, Until: gate.Until}
	action.Exchange = "okx"
	action.Action = market.Action{Verb: market.VerbWithhold, Actor: "night", Reason: "wrong <book>", Pair: btc}
	override.Override = market.Override{
		Kind: market.OverrideIsolate, Exchange: "okx", Class: market.ClassStream, Actor: "night", Reason: "maintenance",
		Since: eventAt.Add(-time.Hour), Until: override.Until,
	}
	maintenance.Exchange = "coinbase"
	maintenance.Maintenance = market.Maintenance{Exchange: "coinbase", From: eventAt, Until: maintenance.Until, Note: "upgrade", Announced: true}
	return []market.Event{circuit, gate, action, override, maintenance}
}

func TestEvent_readsWhatItWrote(t *testing.T) {
	for _, want := range examples() {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got market.Event
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
	}
}

// TestEvent_hidesWhoseAccount: the scope of an account is told, its name is not.
func TestEvent_hidesWhoseAccount(t *testing.T) {
	e := examples()[1]
	e.Gate.Scope = market.Scope{Kind: market.ScopeAccount, Name: "main"}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"1f2e3d-7","at":"2026-11-29T02:00:00.123Z","type":"gate","exchange":"binance","scope":{"kind":"account"},"kind":"banned","until":"2026-11-29T02:01:00.123Z"}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestEvent_refusesRubbish(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `{"id":"a-b","type":"gate"}`, `{"id":"a-01","type":"gate"}`, `{"id":"a-1","type":"party"}`,
		`{"id":"a-1","type":"gate","kind":"rain"}`, `{"id":"a-1","type":"action","symbol":"BTC"}`,
	} {
		var e market.Event
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("%s was read as %+v", text, e)
		}
	}
}

func TestMaintenance_isActiveInItsTime(t *testing.T) {
	m := market.Maintenance{From: eventAt, Until: eventAt.Add(time.Hour)}
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{-1, false}, {0, true}, {time.Hour - 1, true}, {time.Hour, false}} {
		if got := m.Active(eventAt.Add(c.after)); got != c.want {
			t.Errorf("after %v: %v", c.after, got)
		}
	}
	if open := (market.Maintenance{}); !open.Active(eventAt) {
		t.Error("a window without ends is under way")
	}
}

// TestEvent_inWords: what a tired person reads.
func TestEvent_inWords(t *testing.T) {
	want := []string{
		"okx market data (v5): failing, 5 failures in a row (timeout), next try at 02:01:00 UTC",
		"binance: nothing is sent to the endpoint books before 02:01:00 UTC (banned)",
		"night: withhold okx BTC/USDT until 02:01:00 UTC (wrong <book>)",
		"okx stream: the isolation by night has ended (maintenance)",
		"coinbase: the exchange announces maintenance from 29 Nov 02:00 UTC until 29 Nov 02:01 UTC (upgrade)",
	}
	for i, e := range examples() {
		if got := e.Text(); got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
}

// TestEvent_tellsWhatFailed: the second line of an order that has no effect says so, in JSON and in words.
func TestEvent_tellsWhatFailed(t *testing.T) {
	for want, e := range map[string]market.Event{
		"bob: reload failed (config.yaml:3:1: unknown key)": {
			Action: market.Action{Verb: market.VerbReload, Actor: "bob", Reason: "new limits", Failed: "config.yaml:3:1: unknown key"},
		},
		"bob: purge okx BTC/USDT failed (redis does not answer)": {
			Exchange: "okx", Action: market.Action{
				Verb: market.VerbPurge, Actor: "bob", Reason: "wrong", Pair: market.Pair{Base: "BTC", Quote: "USDT"}, Failed: "redis does not answer",
			},
		},
	} {
		e.Boot, e.Seq, e.At, e.Type = "1f2e3d", 8, eventAt, market.EventAction
		if got := e.Text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var again market.Event
		if err := json.Unmarshal(text, &again); err != nil || again.Action.Failed != e.Action.Failed {
			t.Errorf("%s was read as %+v: %v", text, again.Action, err)
		}
	}
}

// TestEvent_saysWhichSecond: what ends within two minutes is told with its seconds, across midnight too.
func TestEvent_saysWhichSecond(t *testing.T) {
	e := examples()[2]
	e.At = time.Date(2026, 11, 29, 23, 59, 10, 0, time.UTC)
	for length, want := range map[time.Duration]string{
		50 * time.Second: "night: withhold okx BTC/USDT until 00:00:00 UTC (wrong <book>)",
		time.Hour:        "night: withhold okx BTC/USDT until 30 Nov 00:59 UTC (wrong <book>)",
	} {
		e.Until = e.At.Add(length)
		if got := e.Text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	o := examples()[3].Override
	o.Until = time.Date(2026, 11, 30, 8, 29, 41, 0, time.UTC)
	if got, want := o.Ending(), "okx stream: the isolation by night ends at 08:29:41 UTC (maintenance)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
