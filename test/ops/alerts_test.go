package ops_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestAlerts_sayWhatAPersonNeeds: each has a severity, a sentence, a text about this case, a runbook and the way to the
// dashboard.
func TestAlerts_sayWhatAPersonNeeds(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range rules(t, "alerts.yml") {
		if !regexp.MustCompile(`^Gateway([A-Z][a-z]+)+$`).MatchString(a.Alert) || seen[a.Alert] {
			t.Errorf("alert %q: not a name, or there twice", a.Alert)
		}
		seen[a.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		if s := a.Annotations["summary"]; strings.Contains(s, "{{") || !strings.HasSuffix(s, ".") {
			t.Errorf("%s: the summary is not a fixed sentence: %q", a.Alert, s)
		}
		if d := a.Annotations["description"]; !strings.Contains(d, "{{") || !strings.HasSuffix(d, ".") && !strings.HasSuffix(d, "?") {
			t.Errorf("%s: the description tells nothing of the case: %q", a.Alert, d)
		}
		want := "http://{{ $labels.instance }}/ui/runbooks/" + a.Alert + ".md"
		if a.Alert == "GatewayTargetDown" { // its gateway could not show it
			want = "docs/runbooks/GatewayTargetDown.md"
		}
		if got := a.Annotations["runbook_url"]; got != want {
			t.Errorf("%s: runbook %q, want %q", a.Alert, got, want)
		}
		if !strings.Contains(a.Annotations["dashboard_url"], "http://{{") {
			t.Errorf("%s: dashboard %q", a.Alert, a.Annotations["dashboard_url"])
		}
	}
}

// TestRunbooks_oneForEachAlert: with the parts that a stranger looks for, and none for an alert that does not exist.
func TestRunbooks_oneForEachAlert(t *testing.T) {
	severity := map[string]string{}
	for _, a := range rules(t, "alerts.yml") {
		severity[a.Alert] = a.Labels["severity"]
	}
	found := map[string]bool{}
	alertName := regexp.MustCompile(`\bGateway[A-Z]\w+`)
	for _, file := range glob(t, "docs/runbooks/*.md") {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		found[name] = true
		text := read(t, file)
		if severity[name] == "" {
			t.Errorf("%s is about no alert", file)
		}
		if want := "# " + name + "\n\n**" + severity[name] + ".** "; !strings.HasPrefix(text, want) {
			t.Errorf("%s does not begin with %q", file, want)
		}
		at := 0
		for _, part := range []string{"**What clients see.** ", "\n## Look at\n", "\n## Do\n\n1. ", "\n## Wake somebody\n", "\n## It ends\n"} {
			i := strings.Index(text[at:], part)
			if i < 0 {
				t.Errorf("%s lacks %q, or has it out of order", file, strings.TrimSpace(part))
				continue
			}
			at += i
		}
		for _, other := range alertName.FindAllString(text, -1) {
			if severity[other] == "" {
				t.Errorf("%s sends its reader to %s, which does not exist", file, other)
			}
		}
	}
	for name := range severity {
		if !found[name] {
			t.Errorf("%s has no runbook", name)
		}
	}
}

// TestAlerts_haveCases: each is tested with a case in which it fires and one in which it does not.
func TestAlerts_haveCases(t *testing.T) {
	type both struct{ fires, silent bool }
	cases := map[string]both{}
	for _, file := range glob(t, "ops/prometheus/tests/*.yml") {
		var doc struct {
			Tests []struct {
				Name           string `yaml:"name"`
				AlertRuleTests []struct {
					Alertname string `yaml:"alertname"`
					ExpAlerts []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		if err := yaml.Unmarshal([]byte(read(t, file)), &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range doc.Tests {
			for _, a := range c.AlertRuleTests {
				if !strings.HasPrefix(c.Name, a.Alertname+": ") {
					t.Errorf("%s: the case %q asks for %s", file, c.Name, a.Alertname)
				}
				b := cases[a.Alertname]
				cases[a.Alertname] = both{b.fires || len(a.ExpAlerts) > 0, b.silent || len(a.ExpAlerts) == 0}
			}
		}
	}
	for _, a := range rules(t, "alerts.yml") {
		if c := cases[a.Alert]; !c.fires || !c.silent {
			t.Errorf("%s: a case in which it fires: %v, in which it does not: %v", a.Alert, c.fires, c.silent)
		}
		delete(cases, a.Alert)
	}
	for name := range cases {
		t.Errorf("a case for %s, which does not exist", name)
	}
}

// TestPromtool: Prometheus' own tool finds nothing in the rules and passes their cases.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, args := range [][]string{
		append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, glob(t, "ops/prometheus/rules/*.yml")...),
		{"check", "config", "ops/prometheus/prometheus.yml"},
		append([]string{"test", "rules"}, glob(t, "ops/prometheus/tests/*.yml")...),
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
