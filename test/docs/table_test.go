package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
var root = filepath.Join("..", "..")

// code finds what stands between backticks.
var code = regexp.MustCompile("`([^`]+)`")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// part is the README between a pair of markers.
func part(t *testing.T, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, "README.md"), "<!-- "+name+":begin -->\n")
	body, _, ok2 := strings.Cut(rest, "<!-- "+name+":end -->")
	if !ok || !ok2 {
		t.Fatalf("README has no part %q", name)
	}
	return body
}

// rows are the cells of a table's rows, without its head.
func rows(t *testing.T, table string) [][]string {
	t.Helper()
	var all [][]string
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	if len(all) < 3 {
		t.Fatalf("there is no table in %q", table)
	}
	return all[2:] // head and rule
}

// quoted are the words between backticks.
func quoted(text string) []string {
	var all []string
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
