package dashboard_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

var update = flag.Bool("update", false, "write the golden files")

func ptr[T any](v T) *T { return &v }

// overview is one exchange that is well and one that is not, with words in it that a page or a terminal must not obey.
func overview() *ops.Overview {
	now := time.Date(2026, 11, 30, 2, 14, 7, 0, time.UTC)
	thresholds := ops.Thresholds{Consecutive: 5, Rate: 0.5, MinSettled: 10}
	return &ops.Overview{
		Instance: "gw-1", Version: "1.2.3", Boot: "b1", Now: now, StartedAt: now.Add(-3 * 24 * time.Hour), HistorySince: now.Add(-24 * time.Hour),
		LastEvent: "b1-7", Level: ops.LevelDegraded, Headline: "1 of 2 degraded: okx does not answer since 2m14s",
		Degraded: []string{"redis: read-only"},
		Exchanges: []ops.Exchange{
			{
				ID: "binance", State: ops.StateClosed, Level: ops.LevelOK, Clients: "live answers",
				Circuits: []ops.Circuit{{Class: "market_data", State: market.CircuitClosed, Since: now.Add(-time.Hour), Thresholds: thresholds, Window: ops.Window{Settled: 40}}},
			},
			{
				ID: "okx", State: ops.StateOpen, Level: ops.LevelDegraded, Why: "5 failures in a row (timeout)", Clients: "stale books; balances refused",
				Since: ptr(now.Add(-134 * time.Second)), NextProbe: ptr(now.Add(31 * time.Second)),
				Circuits: []ops.Circuit{
					{Class: "market_data", State: market.CircuitOpen, Isolated: true, Since: now.Add(-134 * time.Second), OpenUntil: ptr(now.Add(31 * time.Second)), Thresholds: thresholds, Window: ops.Window{Settled: 12, Failures: 6, Consecutive: 5}, CauseText: "5 failures in a row (timeout)"},
					{Class: "account", Family: "advanced", State: market.CircuitHalfOpen, Since: now.Add(-time.Second), ProbeDue: true, Thresholds: thresholds},
				},
				Overrides:   []ops.Override{{Kind: market.OverrideIsolate, Class: "market_data", Actor: "night", Reason: "wrong <script>alert(1)</script> \x1b[31mprices\n", Since: now, Until: now.Add(45 * time.Minute)}},
				Gates:       []ops.Gate{{Scope: market.ScopeEndpoint, Name: "books", Kind: "rate_limited", Until: now.Add(9 * time.Second)}},
				Maintenance: []ops.Maintenance{{From: ptr(now), Active: true, Announced: true, Note: "Spot \u202eupgrade"}},
			},
		},
		Books: []ops.Book{
			{Exchange: "okx", Symbol: "BTC/USDT", Status: "stale", Source: "memory", Reason: "circuit_open", AgeMS: ptr(int64(134_200)), Spread: ptr("0.1")},
			{Exchange: "binance", Symbol: "BTC/USDT", Status: "live", Source: "stream", AgeMS: ptr(int64(42)), Spread: ptr("0.01")},
			{Exchange: "binance", Symbol: "ETH/USDT", Status: "syncing"},
		},
		Clients: []ops.ClientUse{
			{Client: "desk-a", Requests: 5940, Refused: 5, Upstream: 1200, InFlight: 3, Streams: 2},
			{Client: "keyless", Requests: 900, Refused: 40, Upstream: 600, InFlight: 20},
			{Client: "desk-b", Requests: 60, Upstream: 12},
		},
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestPlain_textForATerminal(t *testing.T) {
	text := body(t, get(t, "/ui/plain", "Accept", "*/*"))
	golden(t, "plain.txt", text)
	if first, _, _ := strings.Cut(text, "\n"); first != overview().Headline {
		t.Errorf("the first line is %q, want the headline", first)
	}
	if root := body(t, get(t, "/", "Accept", "*/*")); root != text {
		t.Error("curl of / is another text than curl of /ui/plain")
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r == '\u202e' || r == 0x7f) }); i >= 0 {
		t.Errorf("a terminal would obey %q", text[i:min(len(text), i+8)])
	}
}

func TestPlain_pageWithoutScript(t *testing.T) {
	r := get(t, "/ui/plain", "Accept", browser)
	page := body(t, r)
	golden(t, "plain.html", regexp.MustCompile(`assets/[0-9a-f]{16}/`).ReplaceAllString(page, "assets/VERSION/"))
	if strings.Contains(page, "<script") {
		t.Error("the page without a script has one")
	}
	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q: an old state must not be shown as the present one", got)
	}
}

func TestPlain_ofAGatewayThatHasSeenNothing(t *testing.T) {
	text := body(t, getWith(t, &ops.Overview{Headline: "starting"}))
	if !strings.HasPrefix(text, "starting\n") {
		t.Errorf("got %q", text)
	}
}
