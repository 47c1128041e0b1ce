package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/fleet"
)

// sources is the text of every Go file of the product, tests apart.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, tree := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// operating are the last three tables of the part "Operating it": what is degraded, log lines, metrics. The first is what
// operators do.
func operating(t *testing.T) (degraded, lines, metrics [][]string) {
	t.Helper()
	_, body, ok := strings.Cut(read(t, "README.md"), "## Operating it\n")
	body, _, ok2 := strings.Cut(body, "\n## ")
	tables := regexp.MustCompile(`(?m)(^\|.*\n)+`).FindAllString(body, -1)
	if !ok || !ok2 || len(tables) != 4 {
		t.Fatalf("the part has %d tables, want 4", len(tables))
	}
	return rows(t, tables[1]), rows(t, tables[2]), rows(t, tables[3])
}

func firsts(all [][]string) []string {
	var words []string
	for _, row := range all {
		words = append(words, quoted(row[0])...)
	}
	return words
}

// TestREADME_operatingNamesExist: each word that an operator is told to look for is one that the gateway writes.
func TestREADME_operatingNamesExist(t *testing.T) {
	degraded, lines, metrics := operating(t)
	want := []string{fleet.DegradedFile, fleet.DegradedRedis, fleet.DegradedOperations, cache.DegradedRead, cache.DegradedWrite, cache.DegradedValues, cache.DegradedLists, dial.Degraded, app.DegradedTLS, keys.Degraded}
	if got := firsts(degraded); !slices.Equal(got, want) {
		t.Errorf("degraded words are %v, want %v", got, want)
	}
	code := sources(t)
	for _, line := range firsts(lines) {
		if !strings.Contains(code, strconv.Quote(line)) {
			t.Errorf("no log line says %q", line)
		}
	}
	for _, name := range firsts(metrics) {
		written := func(prefix string) bool {
			return strings.Contains(code, strconv.Quote(strings.TrimPrefix(name, prefix)))
		}
		if !written("") && !written("gateway_") && !written("gateway_feed_") {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// TestREADME_targetsExist: each `make x` of the README is a target.
func TestREADME_targetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	targets := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(targets) < 5 {
		t.Fatalf("the README names %d targets", len(targets))
	}
	for _, m := range targets {
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
			t.Errorf("the Makefile has no target %s", m[1])
		}
	}
}
