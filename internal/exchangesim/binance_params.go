package exchangesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// symbolRange is the range of 2022's error text, widened for Unicode as of December 2025: letters of no case count as upper case.
var symbolRange = regexp.MustCompile(`^[\p{Lu}\p{Lo}0-9\-_.]{1,20}$`)

// checkParams refuses parameters that the endpoint does not have, empty ones and repeated ones: Binance does not drop them silently.
func (b *binance) checkParams(c *call) (answer, bool) {
	sent := 0
	for name, values := range c.query {
		sent += len(values)
		if len(values) > 1 && slices.Contains(c.ep.params, name) {
			return binanceError(http.StatusBadRequest, -1101, "Duplicate values for a parameter detected."), false
		}
	}
	known := 0
	for _, name := range c.ep.params {
		if !c.query.Has(name) {
			continue
		}
		known++
		if c.query.Get(name) == "" {
			return binanceError(http.StatusBadRequest, -1105, fmt.Sprintf("Parameter '%s' was empty.", name)), false
		}
	}
	switch {
	case sent > known && len(c.ep.params) == 0:
		return binanceError(http.StatusBadRequest, -1101, fmt.Sprintf("Too many parameters; expected '0' and received '%d'.", sent)), false
	case sent > known:
		return binanceError(http.StatusBadRequest, -1104, fmt.Sprintf("Not all sent parameters were read; read '%d' parameter(s) but was sent '%d'.", known, sent)), false
	}
	return answer{}, true
}

func mandatory(name string) answer {
	return binanceError(http.StatusBadRequest, -1102, fmt.Sprintf("Mandatory parameter '%s' was not sent, was empty/null, or malformed.", name))
}

func illegal(name, legal string) answer {
	return binanceError(http.StatusBadRequest, -1100, fmt.Sprintf("Illegal characters found in parameter '%s'; legal range is '%s'.", name, legal))
}

// symbol looks a symbol up and checks symbolStatus.
func (b *binance) symbol(c *call, name string) (*pair, answer, bool) {
	if !symbolRange.MatchString(name) {
		return nil, illegal("symbol", `^[\\w\\-._&&[^a-z]]{1,20}$`), false
	}
	p, ok := b.v.pairs[name]
	if !ok {
		return nil, binanceError(http.StatusBadRequest, -1121, "Invalid symbol."), false
	}
	if want := c.query.Get("symbolStatus"); want != "" && want != b.status(c, p) {
		return nil, binanceError(http.StatusBadRequest, -1220, "The symbol's status does not match the requested symbolStatus."), false
	}
	return p, answer{}, true
}

// selected gives the pairs that symbol, symbols or nothing ask for, and whether the answer is a single object.
func (b *binance) selected(c *call) (pairs []*pair, single bool, a answer, ok bool) {
	if c.query.Has("symbol") && c.query.Has("symbols") {
		return nil, false, binanceError(http.StatusBadRequest, -1128, "Combination of optional parameters invalid."), false
	}
	if c.query.Has("symbol") {
		p, a, ok := b.symbol(c, c.query.Get("symbol"))
		return []*pair{p}, true, a, ok
	}
	want := c.query.Get("symbolStatus")
	if !c.query.Has("symbols") {
		for _, p := range b.v.listed() {
			if want == "" || want == b.status(c, p) {
				pairs = append(pairs, p)
			}
		}
		return pairs, false, answer{}, true
	}
	var names []string
	list := c.query.Get("symbols")
	if err := json.Unmarshal([]byte(list), &names); err != nil || strings.ContainsAny(list, " \t") {
		return nil, false, illegal("symbols", `^\\[(\"[\\w\\-._&&[^a-z]]{1,20}\"(,\"[\\w\\-._&&[^a-z]]{1,20}\"){0,}){0,1}\\]$`), false
	}
	for i, name := range names {
		p, known := b.v.pairs[name]
		if !known {
			return nil, false, binanceError(http.StatusBadRequest, -1121, "Invalid symbol."), false
		}
		if slices.Contains(names[:i], name) {
			return nil, false, binanceError(http.StatusBadRequest, -1151, "Symbol is present multiple times in the list."), false
		}
		if want == "" || want == b.status(c, p) {
			pairs = append(pairs, p)
		}
	}
	return pairs, false, answer{}, true
}

// permissions reads what symbols are to be filtered by: one name, or a list of them; nil without the parameter.
func permissions(c *call) (names []string, a answer, ok bool) {
	text := c.query.Get("permissions")
	switch {
	case text == "":
		return nil, answer{}, true
	case c.query.Has("symbol") || c.query.Has("symbols"):
		return nil, binanceError(http.StatusBadRequest, -1128, "Combination of optional parameters invalid."), false
	case permissionRange.MatchString(text):
		return []string{text}, answer{}, true
	}
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) == 0 {
		return nil, illegal("permissions", permissionRange.String()), false
	}
	return names, answer{}, true
}

var permissionRange = regexp.MustCompile(`^[A-Z0-9_]{1,30}$`)

// depthLimit reads limit: any whole number from 1; above 5000 is served as 5000.
func depthLimit(text string) (int, answer, bool) {
	if text == "" {
		return 100, answer{}, true
	}
	if strings.Trim(text, "0123456789") != "" || len(text) > 20 {
		return 0, illegal("limit", "^[0-9]{1,20}$"), false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		n = 5000 // more than an int holds is above 5000
	}
	if n < 1 {
		return 0, binanceError(http.StatusBadRequest, -1130, "Data sent for parameter 'limit' is not valid."), false
	}
	return min(n, 5000), answer{}, true
}
