package archtest_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "exchange-gateway"

// rule says what a package's own code, tests apart, may import: packages of ours, and outside libraries by prefix. The
// standard library is free to all.
type rule struct {
	ours    []string
	outside []string
}

// Outside libraries by their doors.
const (
	decimal    = "github.com/shopspring/decimal"
	breaker    = "github.com/sony/gobreaker"
	redis      = "github.com/redis/go-redis"
	chi        = "github.com/go-chi/chi"
	cors       = "github.com/go-chi/cors"
	prometheus = "github.com/prometheus/client_golang"
	yaml       = "github.com/goccy/go-yaml"
	syncx      = "golang.org/x/sync"
	rate       = "golang.org/x/time"
	kong       = "github.com/alecthomas/kong"
	websocket  = "github.com/coder/websocket"
	gobwas     = "github.com/gobwas/ws"
	otel       = "go.opentelemetry.io/otel"
)

// rules is the house: who stands on whom. A package without a row fails, and so does a permission that nobody uses.
var rules = map[string]rule{
	"internal/clock":                  {ours: []string{"internal/clock/internal/machine"}},
	"internal/clock/clocktest":        {ours: []string{"internal/clock/internal/machine"}},
	"internal/clock/internal/machine": {},
	"internal/market":                 {outside: []string{decimal}},
	"internal/dial":                   {},
	"internal/regular":                {},
	"internal/api/cork":               {},
	"internal/exchange":               {ours: []string{"internal/market", "internal/dial"}, outside: []string{websocket}},
	"internal/exchange/binance":       {ours: []string{"internal/market", "internal/exchange"}},
	"internal/exchange/okx":           {ours: []string{"internal/market", "internal/exchange"}, outside: []string{decimal}},
	"internal/exchange/coinbase":      {ours: []string{"internal/market", "internal/exchange"}},
	"internal/exchange/exchangetest":  {ours: []string{"internal/market"}},
	"internal/exchangesim":            {outside: []string{gobwas}},
	"internal/resilience":             {ours: []string{"internal/market"}, outside: []string{breaker, prometheus}},
	"internal/cache":                  {ours: []string{"internal/market"}, outside: []string{redis, prometheus}},
	"internal/cache/redistest":        {},
	"internal/fleet":                  {ours: []string{"internal/market", "internal/regular"}, outside: []string{redis}},
	"internal/feed":                   {ours: []string{"internal/market", "internal/feed/localbook"}, outside: []string{prometheus}},
	"internal/feed/localbook":         {ours: []string{"internal/market"}},
	"internal/feed/hub":               {ours: []string{"internal/market", "internal/feed"}, outside: []string{prometheus}},
	"internal/gateway":                {ours: []string{"internal/market"}, outside: []string{prometheus}},
	"internal/compat":                 {ours: []string{"internal/market", "internal/gateway"}},
	"internal/compat/binance":         {ours: []string{"internal/market", "internal/gateway", "internal/compat"}},
	"internal/ops":                    {ours: []string{"internal/market"}, outside: []string{prometheus}},
	"internal/notify":                 {ours: []string{"internal/market"}, outside: []string{prometheus}},
	"internal/tracing":                {ours: []string{"internal/market"}, outside: []string{otel}},
	"internal/dashboard":              {ours: []string{"internal/market", "internal/ops", "docs/runbooks"}},
	"internal/api":                    {ours: []string{"internal/market", "internal/gateway", "internal/feed", "internal/feed/hub", "internal/ops", "internal/compat", "internal/api/cork", "internal/api/keys", "internal/api/quota", "internal/api/session", "internal/api/stream", "internal/swaggerui", "docs/openapi"}, outside: []string{chi, cors, prometheus}},
	"internal/api/stream":             {ours: []string{"internal/market", "internal/feed", "internal/feed/hub"}, outside: []string{gobwas, prometheus}},
	"internal/api/session":            {ours: []string{"internal/api/keys"}},
	"internal/api/keys":               {ours: []string{"internal/market", "internal/regular"}, outside: []string{yaml}},
	"internal/api/quota":              {ours: []string{"internal/market", "internal/api/keys"}, outside: []string{rate, prometheus}},
	"internal/swaggerui":              {},
	"internal/archtest":               {},
	"docs/runbooks":                   {},
	"docs/openapi":                    {outside: []string{yaml}},
	"client":                          {outside: []string{decimal, websocket}},
}

// free are the trees whose packages may import everything of ours, and the libraries of a program.
var free = map[string]rule{
	"cmd/exchangesim": {ours: []string{"internal/exchangesim"}, outside: []string{kong, syncx}},
	"cmd":             {ours: []string{"internal", "cmd/gateway", "client"}, outside: []string{redis, prometheus, yaml, kong, syncx, otel}},
	"examples":        {ours: []string{"client"}},
	"test":            {ours: []string{"internal", "cmd", "test", "client"}, outside: []string{prometheus, breaker, "github.com/failsafe-go/failsafe-go", decimal, gobwas, websocket}},
}

func TestImportsPointDown(t *testing.T) {
	root := filepath.Join("..", "..")
	imports := map[string][]string{} // of each package
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // a module of its own, such as the tools
			}
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg = filepath.ToSlash(pkg)
		imports[pkg] = append(imports[pkg], check(t, path, pkg)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range slices.Sorted(maps.Keys(rules)) {
		names, ok := imports[pkg]
		if !ok {
			t.Errorf("the rule for %s stands for no package", pkg)
			continue
		}
		for _, own := range rules[pkg].ours {
			if !slices.Contains(names, module+"/"+own) {
				t.Errorf("%s may import %s and does not: take the permission away", pkg, own)
			}
		}
		for _, library := range rules[pkg].outside {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, library) }) {
				t.Errorf("%s may import %s and does not: take the permission away", pkg, library)
			}
		}
	}
}

// find is the rule of a package: its own row, or that of the nearest free tree above it.
func find(pkg string) (rule, bool) {
	if r, ok := rules[pkg]; ok {
		return r, true
	}
	for p := pkg; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
		if r, ok := free[p]; ok {
			return r, true
		}
		if strings.HasPrefix(p, "internal/exchangesim/") {
			r := rules["internal/exchangesim"]
			return rule{ours: append([]string{"internal/exchangesim"}, r.ours...), outside: r.outside}, true
		}
	}
	return rule{}, false
}

// check refuses what a file may not import, and returns what it does.
func check(t *testing.T, path, pkg string) (imports []string) {
	t.Helper()
	r, ok := find(pkg)
	if !ok {
		t.Errorf("%s has no rule: add it to the table, lowest first", pkg)
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !allowed(r, pkg, name) {
			t.Errorf("%s: %s may not import %s", path, pkg, name)
		}
		imports = append(imports, name)
	}
	return imports
}

func allowed(r rule, pkg, name string) bool {
	first, _, _ := strings.Cut(name, "/")
	own, isOurs := strings.CutPrefix(name, module+"/")
	switch {
	case isOurs && strings.HasPrefix(pkg, "internal/exchangesim"):
		return slices.Contains(r.ours, own) || strings.HasPrefix(own, "internal/exchangesim")
	case isOurs && (pkg == "test" || strings.HasPrefix(pkg, "test/") || strings.HasPrefix(pkg, "cmd/")):
		return slices.ContainsFunc(r.ours, func(p string) bool { return own == p || strings.HasPrefix(own, p+"/") })
	case own == "internal/clock" && strings.HasPrefix(pkg, "internal/"):
		return true // it stands below all others, and all of them tell the time by it
	case isOurs:
		return slices.Contains(r.ours, own)
	case !strings.Contains(first, "."):
		return true
	}
	return slices.ContainsFunc(r.outside, func(p string) bool { return strings.HasPrefix(name, p) })
}
