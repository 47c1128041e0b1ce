package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// steady are the trees whose code tells the time by internal/clock alone. The commands that talk to a gateway from outside, and
// the bot of the demonstration, are clients and not among them.
var steady = []string{"internal", "cmd/gateway/app", "cmd/gateway/config"}

// unsteady are the trees within them that read the time themselves: the clock, exchanges that are played, and helpers of tests.
var unsteady = []string{"internal/clock", "internal/exchangesim", "internal/exchange/exchangetest", "internal/cache/redistest"}

// TestTimeIsToldByTheClock: a step of the wall clock must not change an age, a hold or a quota, so nobody compares with the wall
// clock by an oversight.
func TestTimeIsToldByTheClock(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	for _, tree := range steady {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			if d.IsDir() && slices.Contains(unsteady, filepath.ToSlash(name)) {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				x, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := x.X.(*ast.Ident)
				if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, x.Sel.Name) {
					t.Errorf("%s: time.%s: use clock.%s, or clock.WallNow for what people and other machines read", set.Position(x.Pos()), x.Sel.Name, x.Sel.Name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 200 {
		t.Errorf("%d files were looked at: the trees are others by now", files)
	}
}
