package binance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"exchange-gateway/internal/market"
)

// info is one list of symbols, taken apart as far as its filters need: every symbol keeps the text that it came in.
type info struct {
	body []byte         // what it was made of
	head []byte         // all but the symbols: `"timezone":"UTC","rateLimits":[..],`
	rows []infoRow      // in the list's order
	at   map[string]int // rows by symbol

	mu       sync.Mutex
	variants map[string][]byte // filtered lists, by filter
}

// infoRow is one symbol.
type infoRow struct {
	text        []byte // `{"symbol":"BTCUSDT",..}`
	from, to    int    // where in it the value of permissionSets is, 0 without one
	status      string
	permissions []byte // the other list of permissions, which has been empty since April 2024
}

// readList takes a list apart, once: the gateway gives the same bytes until it has a new one.
func (f *Facade) readList(body []byte) (*info, error) {
	is := func(i *info) bool {
		return i != nil && len(i.body) == len(body) && len(body) > 0 && &i.body[0] == &body[0]
	}
	if i := f.info.Load(); is(i) {
		return i, nil
	}
	f.reading.Lock() // several megabytes: one reads, the others wait for it
	defer f.reading.Unlock()
	if i := f.info.Load(); is(i) {
		return i, nil
	}
	i, err := newInfo(body)
	if err != nil {
		return nil, malformed(err)
	}
	f.info.Store(i)
	return i, nil
}

var errNotAList = errors.New("it has no list of symbols")

func newInfo(body []byte) (*info, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	var symbols []json.RawMessage
	if err := json.Unmarshal(fields["symbols"], &symbols); err != nil || symbols == nil {
		return nil, errNotAList
	}
	i := &info{body: body, at: make(map[string]int, len(symbols)), variants: map[string][]byte{}}
	for _, text := range symbols {
		var w struct {
			Symbol      string          `json:"symbol"`
			Status      string          `json:"status"`
			Permissions json.RawMessage `json:"permissions"`
			Sets        json.RawMessage `json:"permissionSets"`
		}
		if err := json.Unmarshal(text, &w); err != nil {
			return nil, err
		}
		row := infoRow{text: text, status: w.Status, permissions: w.Permissions}
		row.from, row.to = valueOf(text, "permissionSets", w.Sets)
		i.at[w.Symbol] = len(i.rows)
		i.rows = append(i.rows, row)
	}
	delete(fields, "symbols")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		i.head = append(append(i.head, key...), ':')
		i.head = append(append(i.head, fields[name]...), ',')
	}
	return i, nil
}

// valueOf is where in an object's text the value of a field is, 0 and 0 if it is not there in so many words.
func valueOf(object []byte, name string, value []byte) (from, to int) {
	key := bytes.Index(object, []byte(strconv.Quote(name)))
	if key < 0 || len(value) == 0 {
		return 0, 0
	}
	at := bytes.Index(object[key:], value)
	if at < 0 {
		return 0, 0
	}
	return key + at, key + at + len(value)
}

func (i *info) find(symbol string) (infoRow, bool) {
	at, ok := i.at[symbol]
	if !ok {
		return infoRow{}, false
	}
	return i.rows[at], true
}

// permits tells whether a symbol has any of the permissions. They are looked for as the words that they are: a list of all
// names of all symbols would be ten times the text.
func (r infoRow) permits(any []string) bool {
	return slices.ContainsFunc(any, func(name string) bool {
		word := []byte(`"` + name + `"`)
		return bytes.Contains(r.text[r.from:r.to], word) || bytes.Contains(r.permissions, word)
	})
}

// write puts a list together again, bare without the names in permissionSets.
func (i *info) write(rows []infoRow, bare bool) []byte {
	size := len(i.head) + len(`{"symbols":[]}`)
	for _, r := range rows {
		size += len(r.text) + 1
	}
	b := append(append(make([]byte, 0, size), '{'), i.head...)
	b = append(b, `"symbols":[`...)
	for n, r := range rows {
		if n > 0 {
			b = append(b, ',')
		}
		if !bare || r.to == 0 {
			b = append(b, r.text...)
			continue
		}
		b = append(append(append(b, r.text[:r.from]...), "[]"...), r.text[r.to:]...)
	}
	return append(b, "]}"...)
}

// trading is symbolStatus for symbols that trade as usual.
const trading = "TRADING"

// inStatus tells whether a symbol is in a status. The list of pairs, which is held, knows whether it trades; only for one that
// does not does it take the exchange's own list to tell HALT from BREAK.
func (f *Facade) inStatus(ctx context.Context, l *market.Listing, status string) (bool, error) {
	if active := l.Status == market.TradingActive; active || status == trading {
		return active && status == trading, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	a, err := f.list(ctx)
	if err != nil {
		return false, err
	}
	i, err := f.readList(a.Body)
	if err != nil {
		return false, err
	}
	row, ok := i.find(l.Symbol)
	return ok && row.status == status, nil
}
