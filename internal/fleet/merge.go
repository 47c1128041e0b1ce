package fleet

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

const (
	// maxGates bounds what is kept: resilience has at most 1,024 gates of symbols per exchange and few others. At the bound
	// those that end first are given up.
	maxGates = 4096
	// sameClosing is how far apart two stamps of one closing may lie: they travel through two clocks.
	sameClosing = time.Second
	// minMemory is the least time that a gate is remembered after it opened, for the growth of its next hold. Growth is
	// forgotten after a healthy spell as long as the hold was, at least a minute, and a restart may take a while too.
	minMemory = 10 * time.Minute
	// maxMemory bounds what a stamp from a broken clock can do; Binance's longest ban is three days.
	maxMemory = 7 * 24 * time.Hour
)

// gateKey names one gate.
type gateKey struct {
	exchange market.ExchangeID
	scope    market.Scope
}

func keyOf(r market.GateRecord) gateKey { return gateKey{r.Exchange, r.Scope} }

// forgetAt is when nothing about the record matters any more.
func forgetAt(r market.GateRecord) time.Time {
	return r.Until.Add(min(max(r.Until.Sub(r.UpdatedAt), minMemory), maxMemory))
}

// merge joins what two places know of one gate, in either order: the later end with its reason, and the growth of the
// later closing.
func merge(a, b market.GateRecord) market.GateRecord {
	if b.UpdatedAt.After(a.UpdatedAt) {
		a, b = b, a
	}
	if cmp.Or(b.Until.Compare(a.Until), cmp.Compare(b.Kind, a.Kind)) > 0 {
		a.Until, a.Kind = b.Until, b.Kind
	}
	if a.UpdatedAt.Sub(b.UpdatedAt) <= sameClosing {
		a.Step = max(a.Step, b.Step)
	}
	return a
}

// records are gates by name.
type records map[gateKey]market.GateRecord

func (rs records) add(r market.GateRecord) {
	k := keyOf(r)
	if old, ok := rs[k]; ok {
		r = merge(old, r)
	}
	rs[k] = r
}

// news tells whether a list holds something that is not known.
func (rs records) news(list []market.GateRecord) bool {
	return slices.ContainsFunc(list, func(r market.GateRecord) bool {
		old, ok := rs[keyOf(r)]
		return !ok || merge(old, r) != old
	})
}

// prune forgets what does not matter any more, and what ends first beyond maxGates.
func (rs records) prune(now time.Time) {
	for k, r := range rs {
		if !forgetAt(r).After(now) {
			delete(rs, k)
		}
	}
	if len(rs) <= maxGates {
		return
	}
	list := rs.list()
	slices.SortStableFunc(list, func(a, b market.GateRecord) int { return b.Until.Compare(a.Until) })
	for _, r := range list[maxGates:] {
		delete(rs, keyOf(r))
	}
}

// list is in the order of names, so that a file of the same gates is the same file.
func (rs records) list() []market.GateRecord {
	list := make([]market.GateRecord, 0, len(rs))
	for _, r := range rs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b market.GateRecord) int {
		return cmp.Or(
			cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(a.Scope.Kind, b.Scope.Kind), cmp.Compare(a.Scope.Name, b.Scope.Name),
		)
	})
	return list
}

var errInvalid = errors.New("a gate without a name or an end")

// valid tells whether a record can be true. Years are four digits: what is beyond cannot be written down.
func valid(r market.GateRecord) bool {
	return r.Exchange != "" && r.Scope.Kind != "" && r.Step >= 0 && written(r.Until) && written(r.UpdatedAt)
}

func written(t time.Time) bool {
	y := t.UTC().Year()
	return !t.IsZero() && y >= 1 && y < 10_000
}

// kindOf reads a kind's text. One that we do not know, from a newer gateway, still closes its gate.
func kindOf(text string) market.Kind {
	for _, k := range market.Kinds() {
		if k.String() == text {
			return k
		}
	}
	return market.KindRateLimited
}
