package ops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// root is the repository, seen from this package.
var root = filepath.Join("..", "..")

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// glob lists files of the repository, with their paths in it. None is an error: a test of no file would pass.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	for i := range found {
		if found[i], err = filepath.Rel(root, found[i]); err != nil {
			t.Fatal(err)
		}
		found[i] = filepath.ToSlash(found[i])
	}
	return found
}

// rule is a recording rule or an alert.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rules are those of one file of ops/prometheus/rules.
func rules(t *testing.T, file string) (all []rule) {
	t.Helper()
	var doc struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "ops/prometheus/rules", file)), &doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, g := range doc.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", file)
	}
	return all
}

// panel is what matters here of a panel of Grafana's.
type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Datasource *source `json:"datasource"`
	Targets    []struct {
		RefID      string  `json:"refId"`
		Expr       string  `json:"expr"`
		Datasource *source `json:"datasource"`
	} `json:"targets"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// dashboard is what matters here of a dashboard of Grafana's.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Links         []struct {
		URL string `json:"url"`
	} `json:"links"`
	Templating struct {
		List []struct {
			Name, Type, Definition string
		} `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct {
			Name       string  `json:"name"`
			Expr       string  `json:"expr"`
			Datasource *source `json:"datasource"`
		} `json:"list"`
	} `json:"annotations"`
	Panels []panel `json:"panels"`
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for _, file := range glob(t, "ops/grafana/dashboards/*.json") {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = d
	}
	return all
}

// question is one query that somebody wrote, and where.
type question struct{ where, expr string }

// panelQuestions are the queries of all panels and annotations.
func panelQuestions(t *testing.T) (all []question) {
	t.Helper()
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				all = append(all, question{filepath.Base(file) + ", " + p.Title + " " + q.RefID, q.Expr})
			}
		}
		for _, a := range d.Annotations.List {
			if a.Expr != "" {
				all = append(all, question{filepath.Base(file) + ", annotation " + a.Name, a.Expr})
			}
		}
	}
	return all
}

// ruleQuestions are the expressions of all rules and alerts.
func ruleQuestions(t *testing.T) (all []question) {
	t.Helper()
	for _, r := range append(rules(t, "recording.yml"), rules(t, "alerts.yml")...) {
		all = append(all, question{"rule " + r.Record + r.Alert, r.Expr})
	}
	return all
}

// runbookQuestions are the queries that runbooks tell a person to run.
func runbookQuestions(t *testing.T) (all []question) {
	t.Helper()
	for _, file := range glob(t, "docs/runbooks/*.md") {
		for _, block := range strings.Split(read(t, file), "```promql\n")[1:] {
			expr, _, ok := strings.Cut(block, "\n```")
			if !ok {
				t.Errorf("%s: a block that does not end", file)
			}
			all = append(all, question{file, expr})
		}
	}
	return all
}
