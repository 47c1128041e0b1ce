package recorded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// message is what one recorded line says about a book, read by this package.
type message struct {
	symbol     string // "" for a line that says nothing about a book
	snapshot   bool
	first      int64 // Binance: the changes that it holds begin here
	sequence   int64
	at         int64
	bids, asks []level
}

// tape is a recorded stream, with the books that its lines lead to.
type tape struct {
	lines []string
	said  []message
	// numbered tells that a book's sequence names its version. Else only the line does.
	numbered bool
	after    []map[string]*book         // line by line, by symbol
	versions map[string]map[int64]*book // by symbol and sequence
}

// newTape reads lines, starting from the books that are there before the first; none for streams that bring their own.
func newTape(t *testing.T, d *dialect, lines []string, before map[string]*book, numbered bool) *tape {
	t.Helper()
	p := &tape{lines: lines, numbered: numbered, versions: make(map[string]map[int64]*book)}
	now := make(map[string]*book)
	enter := func(symbol string, b *book) {
		now[symbol] = b
		if p.versions[symbol] == nil {
			p.versions[symbol] = make(map[int64]*book)
		}
		p.versions[symbol][b.sequence] = b
	}
	for symbol, b := range before {
		enter(symbol, b)
	}
	for i, line := range lines {
		m, err := d.read([]byte(line))
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		p.said = append(p.said, m)
		switch b := now[m.symbol]; {
		case m.symbol == "":
		case m.snapshot:
			fresh := newBook()
			fresh.set(m.bids, m.asks)
			fresh.sequence, fresh.at = m.sequence, m.at
			enter(m.symbol, fresh)
		case b == nil: // changes of a book that is not known
		case d.ranges && m.sequence <= b.sequence: // in the snapshot already
		default:
			next := b.clone()
			next.set(m.bids, m.asks)
			next.sequence, next.at = m.sequence, m.at
			enter(m.symbol, next)
		}
		state := make(map[string]*book, len(now))
		for symbol, b := range now {
			state[symbol] = b
		}
		p.after = append(p.after, state)
	}
	return p
}

// book is a symbol's after a line, counted from 1; nil if there is none yet.
func (p *tape) book(symbol string, line int) *book {
	if line < 1 {
		return nil
	}
	return p.after[line-1][symbol]
}

// of are the lines that say something about a symbol.
func (p *tape) of(symbol string) []int {
	var lines []int
	for i, m := range p.said {
		if m.symbol == symbol {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(string(read(t, filepath.FromSlash(path)))), "\n")
}

// root is the folder of all recordings. It lies beside the repository and is no part of it: without it the tests are
// skipped, but where CI=true promises it, they fail.
func root(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "recorded")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("recorded streams are required in CI: %v", err)
		}
		t.Skipf("recorded streams are not here: %v", err)
	}
	return dir
}
