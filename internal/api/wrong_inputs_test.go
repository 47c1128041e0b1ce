package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

// wrongInput is one row of testdata/wrong_inputs.json: what is asked, and the problem that is documented for it. The
// table holds for a running gateway too.
type wrongInput struct {
	Method    string   `json:"method"` // GET if empty
	Target    string   `json:"target"`
	Headers   []string `json:"headers"` // name, value, ...
	Key       bool     `json:"key"`     // with a key that may read every account
	Status    int      `json:"status"`
	Code      string   `json:"code"`
	Parameter string   `json:"parameter"`
}

func wrongInputs(t testing.TB) []wrongInput {
	t.Helper()
	text, err := os.ReadFile("testdata/wrong_inputs.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []wrongInput
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestWrongInputs_getTheDocumentedProblem(t *testing.T) {
	k, secret := newKey(t, keys.AccountRead)
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	for _, in := range wrongInputs(t) {
		if in.Method == "" {
			in.Method = http.MethodGet
		}
		if in.Key {
			in.Headers = append(in.Headers, "Authorization", "Bearer "+secret)
		}
		w := do(r.server.Public(), in.Method, strings.ReplaceAll(in.Target, "<bad>", "%3Cbad%3E"), in.Headers...)
		p := readProblem(t, w)
		if w.Code != in.Status || p.Code != in.Code || p.Parameter != in.Parameter {
			t.Errorf("%s %s: %d %s %q, want %d %s %q", in.Method, in.Target, w.Code, p.Code, p.Parameter, in.Status, in.Code, in.Parameter)
		}
		if p.Parameter != "" && !strings.Contains(p.Detail, in.Parameter) {
			t.Errorf("%s: the detail does not name %s: %s", in.Target, in.Parameter, p.Detail)
		}
		if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow = %q", in.Target, w.Header().Get("Allow"))
		}
		if (w.Code == http.StatusUnauthorized) != (w.Header().Get("Www-Authenticate") != "") {
			t.Errorf("%s: %d with WWW-Authenticate %q", in.Target, w.Code, w.Header().Get("Www-Authenticate"))
		}
	}
	if r.books.count() != 0 || len(r.accounts.asked) != 0 {
		t.Errorf("a wrong request reached the policy: %v %v", r.books.asked, r.accounts.asked)
	}
}

func TestUnknownParameter_listsTheAllowedOnes(t *testing.T) {
	p := readProblem(t, newRig(t).get("/v1/price?symbol=BTC/USDT&max_age=5"))
	want := "symbol exchanges max_age_ms"
	if got := strings.Join(p.Allowed, " "); got != want || !strings.Contains(p.Detail, "symbol, exchanges, max_age_ms") {
		t.Errorf("allowed = %q, want %q; detail %q", got, want, p.Detail)
	}
}

func TestSemicolon_saysHowToWriteIt(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{"/v1/price?symbol=BTC/USDT;max_age_ms=5", "/v1/errors?a;b"} {
		if p := readProblem(t, r.get(target)); p.Status != 400 || p.Code != "invalid_parameter" || !strings.Contains(p.Detail, "%3B") {
			t.Errorf("%s: got %+v", target, p)
		}
	}
	if p := readProblem(t, r.get("/v1/price?symbol=BTC%3BUSDT")); p.Parameter != "symbol" {
		t.Errorf("an escaped one is the symbol's: got %+v", p)
	}
}

func TestProblem_showsNoMoreOfTheCallerThanItNeeds(t *testing.T) {
	w := newRig(t).get("/v1/errors?" + strings.Repeat("é", 200) + "=1")
	p := readProblem(t, w)
	if len(p.Parameter) > 70 || !strings.HasSuffix(p.Parameter, "...") || strings.ContainsRune(p.Parameter, '\ufffd') {
		t.Errorf("parameter: %q", p.Parameter)
	}
}

func TestOversized_isRefused(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("x", 20<<10)
	if p := readProblem(t, r.get("/v1/errors?"+long)); p.Code != "uri_too_long" {
		t.Errorf("long URL: %s", p.Code)
	}
	if p := readProblem(t, r.get("/v1/errors", "X-Long", long)); p.Code != "header_too_large" {
		t.Errorf("long header: %s", p.Code)
	}
	req, err := http.NewRequest(http.MethodGet, "/v1/errors", strings.NewReader(strings.Repeat("x", 65<<10)))
	if err != nil {
		t.Fatal(err)
	}
	w := serve(r.server.Public(), req)
	if p := readProblem(t, w); p.Code != "body_too_large" || w.Header().Get("Connection") != "close" {
		t.Errorf("long body: %s, Connection %q", p.Code, w.Header().Get("Connection"))
	}
	small, err := http.NewRequest(http.MethodGet, "/v1/errors", strings.NewReader("ignored"))
	if err != nil {
		t.Fatal(err)
	}
	if w := serve(r.server.Public(), small); w.Code != http.StatusOK {
		t.Errorf("a small body: status %d, want it ignored", w.Code)
	}
}

// FuzzQuery: any query gets a whole answer, and a good one only if every parameter is known.
func FuzzQuery(f *testing.F) {
	for _, in := range wrongInputs(f) {
		if _, query, ok := strings.Cut(in.Target, "?"); ok {
			f.Add(query)
		}
	}
	f.Add("symbol=BTC/USDT&depth=5&max_age_ms=1&require=live")
	r := newRig(f)
	f.Fuzz(func(t *testing.T, query string) {
		req, err := http.NewRequest(http.MethodGet, "/v1/exchanges/binance/orderbook", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.RawQuery = query
		w := serve(r.server.Public(), req)
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%q: no JSON: %s", query, w.Body)
		}
		if w.Code != http.StatusOK {
			readProblem(t, w)
			return
		}
		for name := range req.URL.Query() {
			switch name {
			case "symbol", "depth", "max_age_ms", "require":
			default:
				t.Fatalf("%q was answered with the parameter %q", query, name)
			}
		}
	})
}
