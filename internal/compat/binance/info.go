package binance

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// infoFreshFor is the age up to which the list of symbols is live, as in the gateway's policy.
const infoFreshFor = time.Hour

// exchangeInfo is the list of symbols with their rules. The gateway keeps the whole of it, and every filter is applied to
// that: bots ask for it at their start, and some every minute, at 20 weight. What it says of the time is when it was made.
func (q question) exchangeInfo(ctx context.Context) (*compat.Answer, error) {
	filter, err := q.filter()
	if err != nil {
		return nil, err
	}
	a, err := q.list(ctx)
	if err != nil {
		return nil, err
	}
	answer := &compat.Answer{Body: a.Body, Freshness: &a.Freshness, FreshFor: infoFreshFor}
	if filter.all() {
		return answer, nil
	}
	i, err := q.readList(a.Body)
	if err != nil {
		return nil, err
	}
	if answer.Body, err = i.answer(filter); err != nil {
		return nil, err
	}
	return answer, nil
}

// list is the whole list, as it came.
func (f *Facade) list(ctx context.Context) (*gateway.NativeAnswer, error) {
	return f.books.Native(ctx, gateway.NativeQuestion{
		Exchange: ID, NativeQuery: market.NativeQuery{Endpoint: "exchangeInfo"},
	})
}

// filter says which symbols of a list are shown, and how.
type filter struct {
	symbols     []string // nil for all
	permissions []string // any of them; nil for all
	status      string   // "" for all
	bare        bool     // without the hundreds of names of permissionSets
}

func (l filter) all() bool {
	return l.symbols == nil && l.permissions == nil && l.status == "" && !l.bare
}

// key tells filters apart that show all symbols or most of them.
func (l filter) key() string {
	key := l.status + " " + strings.Join(l.permissions, ",")
	if l.bare {
		key += " bare"
	}
	return key
}

func (q question) filter() (l filter, err error) {
	for _, name := range []string{"permissions", "symbolStatus"} {
		if err := q.apart(name, "symbol", "symbols"); err != nil {
			return l, err
		}
	}
	if err := q.apart("symbol", "symbols"); err != nil {
		return l, err
	}
	if l.status, err = q.status(); err != nil {
		return l, err
	}
	shown, err := q.oneOf("showPermissionSets", "true", "true", "false")
	if err != nil {
		return l, err
	}
	l.bare = shown == "false"
	switch {
	case q.has("symbol"):
		if l.symbols = []string{q.params["symbol"]}; !symbolRange.MatchString(l.symbols[0]) {
			return l, illegal("symbol", symbolRangeText)
		}
	case q.has("symbols"):
		if l.symbols, err = q.symbols(); err != nil {
			return l, err
		}
	case q.has("permissions"):
		if l.permissions, err = q.permissions(); err != nil {
			return l, err
		}
	}
	return l, nil
}

var permission = regexp.MustCompile(`^[A-Z0-9_]{1,30}$`)

// maxPermissions bounds a filter: Binance documents SPOT, MARGIN, LEVERAGED and the names of trading groups.
const maxPermissions = 50

// permissions reads a name or a list of them: SPOT, or ["MARGIN","SPOT"].
func (p params) permissions() ([]string, error) {
	text := p["permissions"]
	if permission.MatchString(text) {
		return []string{text}, nil
	}
	var list []string
	if json.Unmarshal([]byte(text), &list) != nil || len(list) == 0 || len(list) > maxPermissions ||
		slices.ContainsFunc(list, func(name string) bool { return !permission.MatchString(name) }) {
		return nil, illegal("permissions", permission.String())
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// answer is the list with the symbols that pass the filter. A symbol that was named must be there.
func (i *info) answer(l filter) ([]byte, error) {
	if l.symbols == nil {
		return i.variant(l), nil
	}
	rows := make([]infoRow, len(l.symbols))
	for n, symbol := range l.symbols {
		row, ok := i.find(symbol)
		if !ok {
			return nil, refused(http.StatusBadRequest, codeNoSymbol, "Invalid symbol.")
		}
		rows[n] = row
	}
	return i.write(rows, l.bare), nil
}

// variant is the list filtered without naming symbols. The last few are kept as they are sent: such an answer has millions
// of bytes, and a hundred bots that start at once ask for the same one.
func (i *info) variant(l filter) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := l.key()
	if text, ok := i.variants[key]; ok {
		return text
	}
	rows := make([]infoRow, 0, len(i.rows))
	for _, row := range i.rows {
		if (l.status == "" || l.status == row.status) && (l.permissions == nil || row.permits(l.permissions)) {
			rows = append(rows, row)
		}
	}
	if len(i.variants) >= maxVariants {
		clear(i.variants)
	}
	text := i.write(rows, l.bare)
	i.variants[key] = text
	return text
}

// maxVariants is how many filtered lists are kept; at the next one all are let go.
const maxVariants = 4
