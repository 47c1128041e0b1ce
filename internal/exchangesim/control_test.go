package exchangesim_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

func command(t *testing.T, sim *exchangesim.Sim, method, path, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	sim.Control().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestControl_injectsAndCounts(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	b := inMemory(t, sim.Venue("binance"))
	if code, body := command(t, sim, "POST", "/v1/faults/binance", `{"kind":"status","status":599,"body":"odd","class":"market_data","for":"1m"}`); code != 200 || body != "{\"id\":1}\n" {
		t.Fatalf("%d %s", code, body)
	}
	b.get(bookPaths["binance"]).want(t, 599, "odd")
	if code, body := command(t, sim, "GET", "/v1/faults", ""); code != 200 || !strings.Contains(body, `"binance":[{"id":1,"hits":1,"until":`) {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := command(t, sim, "DELETE", "/v1/faults/binance/1", ""); code != 200 {
		t.Errorf("delete: %d", code)
	}
	b.get(bookPaths["binance"]).want(t, 200, "bids")

	code, body := command(t, sim, "GET", "/v1/stats/binance?log=1", "")
	var stats exchangesim.Stats
	if err := json.Unmarshal([]byte(body), &stats); code != 200 || err != nil {
		t.Fatalf("%d %v %s", code, err, body)
	}
	if stats.ByPath["/api/v3/depth"] != 2 || stats.ByStatus[599] != 1 || stats.ByClass["market_data"] != 2 || len(stats.Log) != 2 || stats.Log[0].Symbol != "BTCUSDT" {
		t.Errorf("%+v", stats)
	}
	command(t, sim, "POST", "/v1/stats/reset", "")
	if _, body := command(t, sim, "GET", "/v1/stats", ""); !strings.Contains(body, `"binance":{"dials":0,"requests":0`) {
		t.Errorf("after a reset: %s", body)
	}
}

func TestControl_tellsTheTruth(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want, err := sim.Venue("okx").Book("ETH-USDT", at, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/book/okx?symbol=ETH-USDT&depth=3&at=2026-01-01T00:00:00Z", "/v1/book/okx?symbol=ETH-USDT&depth=3&seq=" + jsonOf(t, want.Seq)} {
		if code, body := command(t, sim, "GET", path, ""); code != 200 || strings.TrimSpace(body) != jsonOf(t, want) {
			t.Errorf("%s: %d %s, want %s", path, code, body, jsonOf(t, want))
		}
	}
	if code, body := command(t, sim, "GET", "/v1/venues", ""); code != 200 || !strings.Contains(body, `"BTC-USDC"`) {
		t.Errorf("%d %s", code, body)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestControl_playsSchedulesAndRelays(t *testing.T) {
	sim, relay, _ := relayed(t)
	if code, body := command(t, sim, "POST", "/v1/schedule", `{"steps":[{"venue":"okx","fault":{"kind":"hang"}}]}`); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	until(t, "the schedule's first fault", func() bool { return len(sim.Venue("okx").Faults()) > 0 })
	command(t, sim, "DELETE", "/v1/schedule", "")
	if len(sim.Venue("okx").Faults()) != 0 {
		t.Error("the schedule's fault outlived it")
	}
	for action, state := range map[string]exchangesim.RelayState{"drop": "drop", "hang": "hang", "heal": "forward"} {
		if code, body := command(t, sim, "POST", "/v1/relays/okx", `{"action":"`+action+`"}`); code != 200 || relay.Stats().State != state {
			t.Errorf("%s: %d %s, state %s", action, code, body, relay.Stats().State)
		}
	}
	if code, body := command(t, sim, "GET", "/v1/relays", ""); code != 200 || !strings.Contains(body, `"okx":{"state":`) {
		t.Errorf("%d %s", code, body)
	}
}

func TestControl_refusesNonsense(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/faults/kraken", `{"kind":"hang"}`, 404},
		{"POST", "/v1/faults/okx", `{"kind":"hang","fro":"1s"}`, 400},
		{"POST", "/v1/faults/okx", `{"kind":"hang"`, 400},
		{"POST", "/v1/faults/okx", `{"kind":"status"}`, 400},
		{"POST", "/v1/faults/okx", `"` + strings.Repeat("x", 1<<20) + `"`, 400},
		{"DELETE", "/v1/faults/okx/7", "", 404},
		{"POST", "/v1/schedule", `{"steps":[]}`, 400},
		{"POST", "/v1/relays/okx", `{"action":"drop"}`, 400},
		{"GET", "/v1/book/okx?symbol=NOPE", "", 404},
		{"GET", "/v1/book/okx?symbol=BTC-USDT&depth=0", "", 400},
		{"GET", "/v1/book/okx?symbol=BTC-USDT&at=now", "", 400},
		{"GET", "/v1/book/okx?symbol=BTC-USDT&seq=3", "", 200},
		{"PUT", "/v1/faults", "", http.StatusMethodNotAllowed},
		{"GET", "/nope", "", 404},
	} {
		if code, body := command(t, sim, tc.method, tc.path, tc.body); code != tc.want && !(strings.HasSuffix(tc.path, "seq=3") && code == 404) {
			t.Errorf("%s %s: %d %.200s, want %d", tc.method, tc.path, code, body, tc.want)
		}
	}
	if code, body := command(t, sim, "GET", "/", ""); code != 200 || body != exchangesim.ControlHelp {
		t.Errorf("help: %d", code)
	}
}
