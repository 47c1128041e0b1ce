package okx_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func announcement(state, service, env, title, end string) string {
	return `{"state":"` + state + `","serviceType":"` + service + `","env":"` + env + `","title":"` + title + `","end":"` + end + `","begin":"1"}`
}

func TestStatus_filters(t *testing.T) {
	f := func(rows string, want market.VenueState, title string, ends int64, accounts ...bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			v, rig := newVenue(t, data(rows))
			for i, demo := range accounts {
				newAccount(t, v, strings.Repeat("a", i+1), demo)
			}
			s, err := v.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.State != want || s.Message != title || !s.CheckedAt.Equal(time.Now()) || !s.Ends.IsZero() && s.Ends.UnixMilli() != ends || s.Ends.IsZero() != (ends == 0) {
				t.Errorf("%s: %+v", rows, s)
			}
			if got := rig.Requests()[0].URL.RequestURI(); got != "/api/v5/system/status" {
				t.Errorf("asked %s", got)
			}
		})
	}
	f(``, market.VenueOK, "", 0)
	for _, service := range []string{"0", "5", "8", "9", "99"} {
		f(announcement("ongoing", service, "1", "Upgrade", "1796003600000"), market.VenueMaintenance, "Upgrade", 1796003600000)
	}
	for _, service := range []string{"6", "7", "10", "11", "12", ""} {
		f(announcement("ongoing", service, "1", "Upgrade", "1796003600000"), market.VenueOK, "", 0)
	}
	for _, state := range []string{"scheduled", "pre_open", "completed", "canceled", ""} {
		f(announcement(state, "5", "1", "Upgrade", "1796003600000"), market.VenueOK, "", 0)
	}
	demo := announcement("ongoing", "5", "2", "Demo upgrade", "1796003600000")
	f(demo, market.VenueOK, "", 0)
	f(demo, market.VenueOK, "", 0, false, true)
	f(demo, market.VenueMaintenance, "Demo upgrade", 1796003600000, true)
	f(announcement("ongoing", "5", "1", "Upgrade", ""), market.VenueMaintenance, "Upgrade", 0, true)
	f(announcement("ongoing", "5", "1", "Short", "1796003600000")+","+announcement("ongoing", "5", "1", "Long", "1796009900000")+","+
		announcement("ongoing", "5", "1", "Unknown end", ""), market.VenueMaintenance, "Long", 1796009900000)
	f(announcement("ongoing", "5", "1", `系统\u0000`+strings.Repeat("维", 100), "1796003600000"), market.VenueMaintenance,
		"系统 "+strings.Repeat("维", 64), 1796003600000) // 199 bytes: cut between characters
}

func TestStatus_planned(t *testing.T) {
	row := func(state, service, env, title, begin, end string) string {
		return strings.Replace(announcement(state, service, env, title, end), `"begin":"1"`, `"begin":"`+begin+`"`, 1)
	}
	synctest.Test(t, func(t *testing.T) {
		v, _ := newVenue(t, data(strings.Join([]string{
			row("scheduled", "5", "1", "Later", "1796003600000", "1796009900000"),
			row("ongoing", "5", "1", "Now", "1795000000000", "1795100000000"),
			row("scheduled", "0", "1", "Sooner", "1795903600000", ""),
			row("scheduled", "6", "1", "Block trading", "1796003600000", "1796009900000"),
			row("scheduled", "5", "2", "Demo", "1796003600000", "1796009900000"),
			row("scheduled", "5", "1", "No beginning", "", "1796009900000"),
			row("scheduled", "5", "1", "Backwards", "1796003600000", "1796003600000"),
			row("pre_open", "5", "1", "Over", "1796003600000", "1796009900000"),
		}, ",")))
		s, err := v.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Began.UnixMilli() != 1795000000000 || s.Message != "Now" || len(s.Planned) != 2 {
			t.Fatalf("%+v", s)
		}
		first, second := s.Planned[0], s.Planned[1]
		if first.Note != "Sooner" || first.From.UnixMilli() != 1795903600000 || !first.Until.IsZero() || !first.Announced {
			t.Errorf("%+v", first)
		}
		if second.Note != "Later" || second.Until.UnixMilli() != 1796009900000 || second.Exchange != v.ID() {
			t.Errorf("%+v", second)
		}

		many := strings.Repeat(row("scheduled", "5", "1", "Later", "1796003600000", "1796009900000")+",", 30)
		v, _ = newVenue(t, data(strings.TrimSuffix(many, ",")))
		if s, err = v.Status(t.Context()); err != nil || len(s.Planned) != 20 {
			t.Errorf("%d planned, %v, want 20", len(s.Planned), err)
		}
	})
}

func TestStatus_withoutEndpoint(t *testing.T) {
	f := func(p exchangetest.Reply, unknown bool) {
		t.Helper()
		v, _ := newVenue(t, always(p))
		s, err := v.Status(t.Context())
		if unknown != (err == nil && s.State == market.VenueUnknown && !s.CheckedAt.IsZero()) {
			t.Errorf("%+v: %+v, %v", p, s, err)
		}
	}
	f(exchangetest.Reply{Status: http.StatusNotFound, Body: "<html>404</html>"}, true)
	f(exchangetest.Reply{Status: http.StatusGone, Body: `{"code":"50005","data":[],"msg":"API is offline or unavailable."}`}, true)
	f(exchangetest.Reply{Status: http.StatusBadGateway}, false)
	f(exchangetest.Reply{Status: http.StatusTooManyRequests, Body: `{"code":"50011","msg":"Too Many Requests"}`}, false)
	f(exchangetest.Reply{Body: `{"code":"0","msg":""}`}, false)
}

// TestStatus_limit: one window of this endpoint's limit is 5 s, not 2 s.
func TestStatus_limit(t *testing.T) {
	v, _ := newVenue(t, says(`{"code":"50011","msg":"Too Many Requests"}`))
	_, err := v.Status(t.Context())
	want := market.Scope{Kind: market.ScopeEndpoint, Name: "status"}
	if r := failure(t, err).Refusal; r == nil || r.Scope != want || r.First != 5*time.Second || r.Max != 30*time.Second {
		t.Errorf("refusal %+v", r)
	}
}
