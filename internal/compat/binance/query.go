package binance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exchange-gateway/internal/compat"
)

// Binance drops no parameter in silence, and neither is one dropped here: a bot that misspells one must hear of it. The codes
// are those of its documentation of errors, and the sentences its own, since clients have been seen to search them.

// maxQuery bounds a query in bytes: more than 500 symbols by name.
const maxQuery = 8 << 10

// params are the parameters of a request, each once, none empty.
type params map[string]string

// readParams reads a query strictly: known are the parameters that the endpoint takes.
func readParams(query string, known []string) (params, error) {
	if len(query) > maxQuery {
		return nil, refused(http.StatusBadRequest, codeIllegal, fmt.Sprintf("The query has %d bytes, more than %d.", len(query), maxQuery))
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, refused(http.StatusBadRequest, codeIllegal, "Illegal characters found in a parameter.")
	}
	p, sent := params{}, 0
	for name, all := range values {
		sent += len(all)
		if slices.Contains(known, name) {
			p[name] = all[0]
		}
	}
	for _, name := range known { // in the order of the documentation, so that the answer does not depend on a map
		switch all := values[name]; {
		case len(all) > 1:
			return nil, refused(http.StatusBadRequest, codeTooMany, "Duplicate values for parameter '"+name+"'.")
		case len(all) == 1 && all[0] == "":
			return nil, refused(http.StatusBadRequest, codeEmpty, "Parameter '"+name+"' was empty.")
		}
	}
	switch {
	case sent > len(p) && len(known) == 0:
		return nil, refused(http.StatusBadRequest, codeTooMany, fmt.Sprintf("Too many parameters; expected '0' and received '%d'.", sent))
	case sent > len(p):
		return nil, refused(http.StatusBadRequest, codeUnread,
			fmt.Sprintf("Not all sent parameters were read; read '%d' parameter(s) but was sent '%d'.", len(p), sent))
	}
	return p, nil
}

// has tells whether any of the parameters was sent.
func (p params) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := p[name]; return ok })
}

// need fails unless all of the parameters were sent.
func (p params) need(names ...string) error {
	for _, name := range names {
		if !p.has(name) {
			return refused(http.StatusBadRequest, codeMissing,
				"Mandatory parameter '"+name+"' was not sent, was empty/null, or malformed.")
		}
	}
	return nil
}

// apart fails if a parameter was sent together with any of the others.
func (p params) apart(name string, others ...string) error {
	if p.has(name) && p.has(others...) {
		return refused(http.StatusBadRequest, codeCombination, "Combination of optional parameters invalid.")
	}
	return nil
}

// encode is the query that the exchange gets: sorted, and without what says nothing, so that one question has one text.
func (p params) encode(leaveOut ...string) string {
	values := make(url.Values, len(p))
	for name, value := range p {
		if !slices.Contains(leaveOut, name) {
			values.Set(name, value)
		}
	}
	return values.Encode()
}

func illegal(name, legal string) error {
	return refused(http.StatusBadRequest, codeIllegal,
		"Illegal characters found in parameter '"+name+"'; legal range is '"+legal+"'.")
}

func notValid(name string) error {
	return refused(http.StatusBadRequest, codeNotValid, "Data sent for parameter '"+name+"' is not valid.")
}

// symbolRange is the range that Binance's error texts name, with letters of no case, which it lists since October 2025.
var symbolRange = regexp.MustCompile(`^[\p{Lu}\p{Lo}0-9\-_.]{1,20}$`)

// symbolRangeText is that range in Binance's own words, a regular expression of Java's. In JSON each backslash is two.
const symbolRangeText = `^[\w\-._&&[^a-z]]{1,20}$`

// symbols reads a list: ["BTCUSDT","BNBUSDT"], percent-encoded, without spaces.
func (p params) symbols() ([]string, error) {
	const legal = `^\[("[\w\-._&&[^a-z]]{1,20}"(,"[\w\-._&&[^a-z]]{1,20}"){0,}){0,1}\]$`
	text := p["symbols"]
	var list []string
	if strings.ContainsAny(text, " \t\r\n") || json.Unmarshal([]byte(text), &list) != nil || len(list) == 0 {
		return nil, illegal("symbols", legal)
	}
	seen := make(map[string]bool, len(list))
	for _, name := range list {
		switch {
		case !symbolRange.MatchString(name):
			return nil, illegal("symbols", legal)
		case seen[name]:
			return nil, refused(http.StatusBadRequest, codeTwice, "Symbol is present multiple times in the list.")
		}
		seen[name] = true
	}
	return list, nil
}

// maxDigits is the longest whole number that Binance reads.
const maxDigits = 20

// whole fails unless the parameters, where they were sent, are whole numbers. How large they may be is the exchange's to say.
func (p params) whole(names ...string) error {
	for _, name := range names {
		if text, ok := p[name]; ok && (strings.Trim(text, "0123456789") != "" || len(text) > maxDigits) {
			return illegal(name, "^[0-9]{1,20}$")
		}
	}
	return nil
}

// count reads a number of rows, at least 1 and at most most: Binance serves a greater one as that.
func (p params) count(name string, usual, most int) (int, error) {
	text, ok := p[name]
	if !ok {
		return usual, nil
	}
	if err := p.whole(name); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil: // more than an int holds is more than most
		return most, nil
	case n < 1:
		return 0, notValid(name)
	}
	return min(n, most), nil
}

// oneOf reads a word; usual without one.
func (p params) oneOf(name, usual string, words ...string) (string, error) {
	text, ok := p[name]
	if !ok {
		return usual, nil
	}
	if !slices.Contains(words, text) {
		return "", notValid(name)
	}
	return text, nil
}

// status reads symbolStatus, "" without one.
func (p params) status() (string, error) {
	text, err := p.oneOf("symbolStatus", "", trading, "HALT", "BREAK")
	if err != nil {
		return "", refused(http.StatusBadRequest, codeSymbolStatus, "Invalid symbolStatus.")
	}
	return text, nil
}

func refused(status int, code, detail string) *compat.Refusal {
	return &compat.Refusal{Status: status, Code: code, Detail: detail}
}
