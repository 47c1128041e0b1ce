package ops_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// schemaVersion is Grafana's of 10.4 and 11; later ones read it.
const schemaVersion = 39

// TestDashboards_areProvisionable: a fixed uid, a pinned schema, the data source a variable everywhere, panels that lie
// beside each other, and links that lead somewhere.
func TestDashboards_areProvisionable(t *testing.T) {
	all := dashboards(t)
	uids := map[string]bool{}
	for file, d := range all {
		if d.UID == "" || uids[d.UID] || d.Title == "" || d.SchemaVersion != schemaVersion {
			t.Errorf("%s: uid %q, title %q, schema %d", file, d.UID, d.Title, d.SchemaVersion)
		}
		uids[d.UID] = true
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		if want := []string{"datasource", "instance", "exchange"}; !slices.Equal(variables, want) {
			t.Errorf("%s: variables %v, want %v", file, variables, want)
		}
		checkPanels(t, file, d.Panels)
		for _, a := range d.Annotations.List {
			if a.Expr != "" && !isVariable(a.Datasource) {
				t.Errorf("%s: annotation %s has a data source of its own", file, a.Name)
			}
		}
	}
	for file, d := range all {
		for _, l := range d.Links {
			if uid, internal := strings.CutPrefix(l.URL, "/d/"); internal && !uids[uid] {
				t.Errorf("%s links to %s, which is not here", file, l.URL)
			}
		}
		if !slices.ContainsFunc(d.Links, func(l struct {
			URL string `json:"url"`
		},
		) bool {
			return l.URL == "http://$instance/"
		}) {
			t.Errorf("%s does not link to the gateway's own page", file)
		}
	}
}

func isVariable(s *source) bool {
	return s != nil && s.Type == "prometheus" && s.UID == "${datasource}"
}

func checkPanels(t *testing.T, file string, panels []panel) {
	t.Helper()
	ids, titles := map[int]bool{}, map[string]bool{}
	taken := map[[2]int]string{}
	section := ""
	known := regexp.MustCompile(`\$(?:instance|exchange|__rate_interval)\b`)
	for _, p := range panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("%s: id %d, title %q", file, p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s: %s lies on %q or beside the page, at %d, %d", file, p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			section = p.Title
			continue
		}
		if titles[section+p.Title] {
			t.Errorf("%s: two panels %q under %q", file, p.Title, section)
		}
		titles[section+p.Title] = true
		if p.Description == "" || !isVariable(p.Datasource) || len(p.Targets) == 0 {
			t.Errorf("%s: %s has no description, no query or a data source of its own", file, p.Title)
		}
		for _, q := range p.Targets {
			if !isVariable(q.Datasource) || !strings.Contains(q.Expr, `job="gateway",instance="$instance"`) {
				t.Errorf("%s: %s does not ask for the chosen gateway: %s", file, p.Title, q.Expr)
			}
			if left := known.ReplaceAllString(q.Expr, ""); strings.Contains(left, "$") {
				t.Errorf("%s: %s uses an unknown variable: %s", file, p.Title, q.Expr)
			}
		}
	}
}

// TestCompose_startsThem: Prometheus and Grafana start on demand, pinned, on loopback, unable to change what they are
// given; and the files that they are given exist.
func TestCompose_startsThem(t *testing.T) {
	var doc struct {
		Services map[string]struct {
			Image       string   `yaml:"image"`
			Profiles    []string `yaml:"profiles"`
			Ports       []string `yaml:"ports"`
			Volumes     []string `yaml:"volumes"`
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			Healthcheck struct {
				Test []string `yaml:"test"`
			} `yaml:"healthcheck"`
		} `yaml:"services"`
		Volumes map[string]any `yaml:"volumes"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &doc); err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`^[a-z/]+:v?\d+\.\d+\.\d+$`)
	for _, name := range []string{"prometheus", "grafana"} {
		s := doc.Services[name]
		if !slices.Equal(s.Profiles, []string{"observe"}) || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.Healthcheck.Test) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s is not pinned: %s", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is published on %s", name, p)
			}
		}
		mounted := 0
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, "./") {
				if _, ok := doc.Volumes[from]; !ok {
					t.Errorf("%s: the volume %s is not declared", name, from)
				}
				continue
			}
			mounted++
			if glob(t, filepath.ToSlash(filepath.Clean(from))+"/*"); !strings.HasSuffix(to, ":ro") {
				t.Errorf("%s may write to %s", name, from)
			}
		}
		if mounted == 0 {
			t.Errorf("%s is given no file", name)
		}
	}
}

// TestScrape_isWhatComposeRuns: the target is the gateway's service, and the label by which links lead to the dashboard
// is the published address.
func TestScrape_isWhatComposeRuns(t *testing.T) {
	conf := read(t, "ops/prometheus/prometheus.yml")
	compose := read(t, "docker-compose.yml")
	for text, parts := range map[string][]string{
		conf:    {"job_name: gateway\n", "targets: [gateway:8081]\n", "instance: 127.0.0.1:8081\n"},
		compose: {"GATEWAY_ADMIN_LISTEN: 0.0.0.0:8081\n", `"127.0.0.1:8081:8081"`},
		read(t, "ops/grafana/provisioning/datasources/prometheus.yml"): {"url: http://prometheus:9090\n", "timeInterval: 15s\n"},
		read(t, "ops/grafana/provisioning/dashboards/gateway.yml"):     {"path: /etc/grafana/dashboards\n"},
	} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in:\n%s", part, text)
			}
		}
	}
}
