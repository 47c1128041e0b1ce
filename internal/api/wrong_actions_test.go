package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

// wrongAction is one row of testdata/wrong_actions.json: what is sent to /admin/v1/, and the problem that is documented
// for it.
type wrongAction struct {
	Path      string   `json:"path"`
	Method    string   `json:"method"` // POST if empty
	Host      string   `json:"host"`   // "-" is none
	Type      string   `json:"type"`   // application/json if empty, "-" is none
	Headers   []string `json:"headers"`
	Key       string   `json:"key"`     // the scope of the key that is sent
	Session   bool     `json:"session"` // with the cookie of a key that may act
	Keyless   bool     `json:"keyless"` // no key exists
	Wide      bool     `json:"wide"`    // the listener is not on loopback
	Body      string   `json:"body"`
	Pad       int      `json:"pad"` // spaces before the body
	Chunked   bool     `json:"chunked"`
	Status    int      `json:"status"`
	Code      string   `json:"code"`
	Parameter string   `json:"parameter"`
}

func wrongActions(t testing.TB) []wrongAction {
	t.Helper()
	text, err := os.ReadFile("testdata/wrong_actions.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []wrongAction
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// request makes the request of a row.
func (in *wrongAction) request(t *testing.T, r *deskRig) *http.Request {
	t.Helper()
	method := in.Method
	if method == "" {
		method = http.MethodPost
	}
	var body io.Reader = strings.NewReader(strings.Repeat(" ", in.Pad) + in.Body)
	if in.Chunked {
		body = io.MultiReader(body) // of a length that nobody knows
	}
	req := httptest.NewRequest(method, "/admin/v1/"+in.Path, body)
	switch in.Host {
	case "":
		req.Host = adminHost
	case "-":
		req.Host = ""
	default:
		req.Host = in.Host
	}
	switch in.Type {
	case "":
		req.Header.Set("Content-Type", "application/json")
	case "-":
	default:
		req.Header.Set("Content-Type", in.Type)
	}
	if in.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.keys[in.Key])
	}
	if in.Session {
		req.Header.Set("Cookie", r.login(t, r.keys[keys.OpsWrite]))
	}
	for i := 0; i+1 < len(in.Headers); i += 2 {
		req.Header.Set(in.Headers[i], in.Headers[i+1])
	}
	return req
}

// TestWrongActions_areRefusedBeforeTheDesk: what is not a well-formed order of somebody who may act never reaches the desk.
func TestWrongActions_areRefusedBeforeTheDesk(t *testing.T) {
	for _, in := range wrongActions(t) {
		r := newDeskRig(t, func(c *api.Config) {
			if in.Keyless {
				keyless(c)
			}
			c.AdminOnLoopback = !in.Wide
		})
		w := serve(r.server.Admin(), in.request(t, r))
		name := in.Method + " " + in.Path + " " + in.Body
		if in.Code == "" { // HEAD
			if w.Code != in.Status {
				t.Errorf("%s: %d, want %d", name, w.Code, in.Status)
			}
		} else if p := readProblem(t, w); w.Code != in.Status || p.Code != in.Code || p.Parameter != in.Parameter {
			t.Errorf("%s: %d %s %q, want %d %s %q: %s", name, w.Code, p.Code, p.Parameter, in.Status, in.Code, in.Parameter, p.Detail)
		} else if p.Parameter != "" && !strings.Contains(p.Detail, in.Parameter) {
			t.Errorf("%s: the detail does not name %s: %s", name, in.Parameter, p.Detail)
		}
		if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: Allow = %q", name, w.Header().Get("Allow"))
		}
		if len(w.Result().Cookies()) != 0 && in.Path != "session/end" {
			t.Errorf("%s: a cookie was set: %v", name, w.Result().Cookies())
		}
		if n := r.desk.count(); n != 0 {
			t.Errorf("%s: the desk was asked %d times: %+v", name, n, r.desk.last())
		}
	}
}

func TestWrongActions_unknownFieldListsTheOthers(t *testing.T) {
	r := newDeskRig(t)
	p := readProblem(t, r.post("withhold", `{"exchange":"okx","pair":"BTC/USDT","reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite]))
	want := []string{"exchange", "symbol", "for", "until", "reason", "actor"}
	if !slices.Equal(p.Allowed, want) || !strings.Contains(p.Detail, strings.Join(want, ", ")) {
		t.Errorf("got %+v", p)
	}
	p = readProblem(t, r.post("isolate", `{"exchange":"okx","class":"books","reason":"x"}`, "X-Api-Key", r.keys[keys.OpsWrite]))
	if want := []string{"market_data", "reference", "account", "stream"}; !slices.Equal(p.Allowed, want) {
		t.Errorf("classes: got %+v", p)
	}
}

// FuzzActionBody: any body gets a whole answer, and the desk hears only of orders that say what they should.
func FuzzActionBody(f *testing.F) {
	f.Add("isolate", `{"exchange":"okx","class":"stream","for":"45m","reason":"Straße \u00e9"}`)
	f.Add("withhold", `{"exchange":"okx","symbol":"BTC-USDT","until":"2126-01-01T00:00:00+02:00","reason":"x"}`)
	f.Add("reload", `{"reason":"x"}`)
	for _, in := range wrongActions(f) {
		if in.Key == keys.OpsWrite && in.Pad == 0 {
			f.Add(in.Path, in.Body)
		}
	}
	r := newDeskRig(f)
	verbs := []string{"isolate", "release", "probe", "withhold", "purge", "reload"}
	f.Fuzz(func(t *testing.T, verb, body string) {
		if !slices.Contains(verbs, verb) {
			verb = verbs[len(verb)%len(verbs)]
		}
		before := r.desk.count()
		w := r.post(verb, body, "X-Api-Key", r.keys[keys.OpsWrite])
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %q: no JSON: %s", verb, body, w.Body)
		}
		if w.Code != http.StatusOK {
			readProblem(t, w)
			if r.desk.count() != before {
				t.Fatalf("%s %q: refused with %d, and the desk was asked", verb, body, w.Code)
			}
			return
		}
		// What is let through is what the standard library reads too, from the same field and no other.
		var fields map[string]string
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatalf("%s %q was let through: %v", verb, body, err)
		}
		o := r.desk.last()
		if r.desk.count() != before+1 || string(o.Verb) != verb || o.Reason == "" || o.Reason != strings.TrimSpace(fields["reason"]) ||
			string(o.Exchange) != fields["exchange"] || string(o.Class) != fields["class"] || o.For < 0 || o.For != 0 && !o.Until.IsZero() {
			t.Fatalf("%s %q became %+v", verb, body, o)
		}
		r.desk.mu.Lock()
		r.desk.orders = r.desk.orders[:0]
		r.desk.mu.Unlock()
	})
}
