package ops_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	matchers   = regexp.MustCompile(`\{[^{}]*\}`)
	labelLists = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)`)
	identifier = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*(?::[a-zA-Z0-9_:]+)?`)
	metricLike = regexp.MustCompile(`^(?:gateway|go|process|promhttp)_|:|^up$`)
)

// names are the metrics and recorded series in a query.
func names(expr string) (all []string) {
	expr = quotedText.ReplaceAllString(expr, `""`)
	expr = labelLists.ReplaceAllString(matchers.ReplaceAllString(expr, ""), "")
	for _, word := range identifier.FindAllString(expr, -1) {
		if metricLike.MatchString(word) && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

func TestNames_findsMetricsAlone(t *testing.T) {
	for expr, want := range map[string]string{
		`sum without (gateway_x) (rate(gateway_a_total{b="gateway_c"}[5m])) > 0.5`:              "gateway_a_total",
		`up{job="gateway"} == 0 or absent(up{job="gateway"})`:                                   "up",
		`a_b:gateway_c:rate5m / (a_b:gateway_d:rate5m > 0)`:                                     "a_b:gateway_c:rate5m a_b:gateway_d:rate5m",
		`time() - go_goroutines and on (job) 3 * instance:go_goroutines:median1h offset 12h`:    "go_goroutines instance:go_goroutines:median1h",
		`histogram_quantile(0.9, gateway_h_seconds_bucket{le=~"600([.]0)?", x="{}"} offset 1m)`: "gateway_h_seconds_bucket",
	} {
		if got := strings.Join(names(expr), " "); got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

// TestRecordedSeriesExist: each recorded series that a query reads is one that a rule writes, and none is written for
// nothing.
func TestRecordedSeriesExist(t *testing.T) {
	written := map[string]bool{}
	for _, r := range rules(t, "recording.yml") {
		written[r.Record] = false
	}
	for _, q := range slices.Concat(ruleQuestions(t), panelQuestions(t), runbookQuestions(t)) {
		for _, name := range names(q.expr) {
			if _, ok := written[name]; !ok && strings.Contains(name, ":") {
				t.Errorf("%s: no rule records %s", q.where, name)
			}
			written[name] = true
		}
	}
	for name, read := range written {
		if !read {
			t.Errorf("nobody reads %s", name)
		}
	}
}
