package night

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/exchangesim"
)

// wrongInput is one row of the API's own table of wrong inputs, or of ours for what needs whole exchanges behind it.
type wrongInput struct {
	Method    string   `json:"method"` // GET if empty
	Target    string   `json:"target"`
	Headers   []string `json:"headers"`
	Key       bool     `json:"key"` // with a key that may read every account
	Status    int      `json:"status"`
	Code      string   `json:"code"`
	Parameter string   `json:"parameter"`
}

// members are what every problem has.
var members = []string{
	"type", "title", "status", "detail", "code", "ccxt_class", "origin", "exchange", "retryable", "retry_after_ms", "circuit", "request_id",
}

// TestWrongInputs: every wrong input of every route gets the documented problem, whole, and reaches no exchange.
func TestWrongInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, err := os.ReadFile("../../internal/api/testdata/wrong_inputs.json")
		if err != nil {
			t.Fatal(err)
		}
		var rows []wrongInput
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatal(err)
		}
		s := newStage(t, setting{})
		codes := s.codes()
		for _, row := range rows {
			row.Target = strings.ReplaceAll(row.Target, "<bad>", "%3Cbad%3E")
			s.wrong(row, codes)
		}
		for _, id := range ids {
			if n := s.taps[id].total(); n != 0 {
				t.Errorf("wrong inputs made %d requests to %s", n, id)
			}
		}
		t.Logf("%d wrong inputs, %d documented codes", len(rows), len(codes))
	})
}

// TestWrongNames: what only an exchange's own list, or the accounts that are configured, can tell to be wrong.
func TestWrongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{}} // all that the simulator lists
		s := newStage(t, setting{sim: whole, conf: func(c *config.Config) {
			withSeconds(t)(c)
			c.Exchanges["okx"] = config.Exchange{Streams: c.Exchanges["okx"].Streams} // without an account
		}})
		narrow := "Bearer " + newKey(t, s.conf.KeysFile, keys.AccountRead+":coinbase/main")
		market := "Bearer " + newKey(t, s.conf.KeysFile, keys.MarketRead)
		time.Sleep(5 * time.Second) // the gateway follows its keys file
		const ex = "/v1/exchanges/"
		rows := []wrongInput{
			{Target: ex + "binance/orderbook?symbol=NOPE/USDT", Status: 404, Code: "symbol_unknown"},
			{Target: ex + "binance/orderbook?symbol=USDT/BTC", Status: 404, Code: "symbol_unknown"},
			{Target: ex + "okx/ticker?symbol=NOPE/USDT&require=live", Status: 404, Code: "symbol_unknown"},
			{Target: ex + "coinbase/orderbook?symbol=BTC/NOPE&max_age_ms=5", Status: 404, Code: "symbol_unknown"},
			{Target: ex + "coinbase/orderbook?symbol=GONE/USD", Status: 404, Code: "symbol_delisted"},
			{Target: "/v1/orderbooks?symbol=NOPE/NADA", Status: 404, Code: "symbol_unknown"},
			{Target: "/v1/price?symbol=NOPE/NADA", Status: 404, Code: "symbol_unknown"},
			{Target: "/v1/price?symbol=DUST/ETH&exchanges=binance", Status: 503, Code: "price_unavailable"},
			{Target: ex + "binance/balance", Key: true, Status: 400, Code: "account_ambiguous"},
			{Target: ex + "binance/balance?account=nobody", Key: true, Status: 404, Code: "account_unknown"},
			{Target: ex + "binance/balance?account=main&wallet=funding", Key: true, Status: 501, Code: "not_supported"},
			{Target: ex + "okx/balance", Key: true, Status: 501, Code: "no_accounts"},
			{Target: ex + "binance/balance?account=main", Headers: []string{"Authorization", narrow}, Status: 403, Code: "forbidden"},
			{Target: ex + "coinbase/balance?account=second", Headers: []string{"Authorization", narrow}, Status: 403, Code: "forbidden"},
			{Target: ex + "coinbase/balance?account=main", Headers: []string{"Authorization", market}, Status: 403, Code: "forbidden"},
		}
		codes := s.codes()
		for _, row := range rows {
			s.wrong(row, codes)
		}
	})
}

// wrong asks and checks the whole of the problem.
func (s *stage) wrong(in wrongInput, codes map[string]int) {
	s.t.Helper()
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	if in.Key {
		in.Headers = append(in.Headers, "Authorization", "Bearer "+s.key)
	}
	a := ask(s.t.Context(), s.app.Public(), in.Method, in.Target, in.Headers...)
	p := problemOf(s.t, a)
	if a.status != in.Status || p.Code != in.Code || p.Parameter != in.Parameter {
		s.t.Errorf("%s %s: %d %s %q, want %d %s %q", in.Method, in.Target, a.status, p.Code, p.Parameter, in.Status, in.Code, in.Parameter)
	}
	var all map[string]any
	if err := json.Unmarshal(a.body, &all); err != nil {
		s.t.Errorf("%s: %v", in.Target, err)
	}
	for _, name := range members {
		if _, ok := all[name]; !ok {
			s.t.Errorf("%s %s: the problem has no %s: %s", in.Method, in.Target, name, a.body)
		}
	}
	status, known := codes[p.Code]
	if !known || status != a.status || p.Status != a.status || p.Type != "/v1/errors#"+p.Code {
		s.t.Errorf("%s %s: %+v does not agree with /v1/errors or its status %d", in.Method, in.Target, p, a.status)
	}
	if p.Title == "" || p.Detail == "" || p.CCXTClass == "" || p.RequestID == "" || p.RequestID != a.header.Get("X-Request-Id") ||
		p.Origin != "gateway" && p.Origin != "exchange" {
		s.t.Errorf("%s %s: members are empty: %s", in.Method, in.Target, a.body)
	}
	if p.Retryable != (a.retryAfter() >= 1) || p.Retryable != (p.RetryAfter != nil) {
		s.t.Errorf("%s %s: retryable %v, Retry-After %q, retry_after_ms %v", in.Method, in.Target, p.Retryable, a.header.Get("Retry-After"), p.RetryAfter)
	}
}

// codes are the documented codes with their statuses.
func (s *stage) codes() map[string]int {
	s.t.Helper()
	doc, _ := decode[struct {
		Errors []struct {
			Code   string `json:"code"`
			Status int    `json:"status"`
		} `json:"errors"`
	}](s.t, s.get("/v1/errors"))
	all := map[string]int{}
	for _, e := range doc.Errors {
		all[e.Code] = e.Status
	}
	return all
}
