package api

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const (
	maxExchanges = 16 // of one `exchanges` list; more than there are adapters
	maxName      = 64 // bytes of an account's or exchange's name

	// maxAgeMillis bounds max_age_ms so that it fits a time.Duration. It is 285 years: any age.
	maxAgeMillis = 9_000_000_000_000
)

// query holds the parameters of one request, each at most once and all of them expected. It borrows from the URL and
// needs no memory of its own for values without escapes.
type query struct {
	names  [maxParams]string
	values [maxParams]string
	n      int
}

// maxParams is how many different parameters one route can have. More is refused before it could matter.
const maxParams = 8

// parseQuery reads a raw query strictly. A parameter that the route does not have is refused, because a mistyped
// max_age_ms must not mean "any age"; so is one that is given twice, because nobody can know which one was meant.
func parseQuery(raw string, allowed []string) (query, error) {
	var q query
	for raw != "" {
		var part string
		part, raw, _ = strings.Cut(raw, "&")
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := unescape(name)
		if err != nil {
			return q, badQuery(err, allowed)
		}
		value, err = unescape(value)
		if likeKey(name) || likeKey(value) {
			return q, errKeyInQuery
		}
		if !slices.Contains(allowed, name) {
			return q, unknownParameter(name, allowed)
		}
		if err != nil {
			return q, invalid(name, misspelt(err), nil)
		}
		if slices.Contains(q.names[:q.n], name) {
			return q, invalid(name, "is given more than once", nil)
		}
		q.names[q.n], q.values[q.n] = name, value
		q.n++
	}
	return q, nil
}

// errKeyInQuery refuses a key where every log on the way would keep it. It repeats nothing of the query.
var errKeyInQuery = &requestError{
	code: CodeInvalidParameter, detail: "A key does not belong into the query, where it ends up in logs. Replace this one, and send its " +
		"successor as `Authorization: Bearer gw_...` or `X-API-Key: gw_...`; on a WebSocket also in the first message, {\"op\":\"auth\",\"key\":\"gw_...\"}.",
}

// likeKey tells whether text is as long as a key at least and begins like one. An account may be called gw_main.
func likeKey(text string) bool { return strings.HasPrefix(text, keyPrefix) && len(text) >= shortestKey }

// shortestKey is the length of a key with the shortest id and secret that package keys takes.
const shortestKey = len(keyPrefix) + 4 + 1 + 20

// errSemicolon refuses what was once a separator and is refused by net/url too.
var errSemicolon = errors.New("raw semicolon")

// misspelt says what is wrong with the spelling of a query or one value of it.
func misspelt(err error) string {
	if errors.Is(err, errSemicolon) {
		return "has a raw semicolon, which separates nothing: write & between parameters, and %3B for a semicolon"
	}
	return "is not validly percent-encoded"
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, ';') >= 0 {
		return "", errSemicolon
	}
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, nil
	}
	return url.QueryUnescape(s)
}

func badQuery(err error, allowed []string) error {
	return &requestError{
		code: CodeInvalidParameter, allowed: allowed,
		detail: "The query string " + misspelt(err) + ". " + allowedParameters(allowed),
	}
}

func unknownParameter(name string, allowed []string) error {
	return &requestError{
		code: CodeUnknownParameter, parameter: clip(name), allowed: allowed,
		detail: fmt.Sprintf("Unknown query parameter %q. %s", clip(name), allowedParameters(allowed)),
	}
}

func allowedParameters(allowed []string) string {
	if len(allowed) == 0 {
		return "This route takes none."
	}
	return "Allowed: " + strings.Join(allowed, ", ") + "."
}

// invalid names the field, says what is wrong with it, and lists the allowed values where they can be listed.
func invalid(name, wrong string, allowed []string) error {
	detail := name + " " + wrong + "."
	if len(allowed) > 0 {
		detail += " Allowed: " + strings.Join(allowed, ", ") + "."
	}
	return &requestError{code: CodeInvalidParameter, parameter: name, allowed: allowed, detail: detail}
}

// clip bounds text of the caller that is shown back to it.
func clip(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "") + "..."
	}
	return s
}

func (q *query) get(name string) (string, bool) {
	if i := slices.Index(q.names[:q.n], name); i >= 0 {
		return q.values[i], true
	}
	return "", false
}

// pair reads the required parameter `symbol`.
func (q *query) pair() (market.Pair, error) {
	v, ok := q.get("symbol")
	if !ok || v == "" {
		return market.Pair{}, invalid("symbol", "is required: BASE/QUOTE, for example BTC/USDT", nil)
	}
	p, err := market.ParsePair(v)
	if err != nil {
		return market.Pair{}, invalid("symbol", err.Error(), nil)
	}
	return p, nil
}

// pairs reads the required parameter `symbols`.
func (q *query) pairs() ([]market.Pair, error) {
	v, ok := q.get("symbols")
	if !ok || v == "" {
		return nil, invalid("symbols", "is required: symbols with commas between, for example BTC/USDT,ETH/USDT", nil)
	}
	parts, err := list("symbols", v, gateway.MaxTickers)
	if err != nil {
		return nil, err
	}
	pairs := make([]market.Pair, 0, len(parts))
	for _, s := range parts {
		p, err := market.ParsePair(s)
		if err != nil {
			return nil, invalid("symbols", err.Error(), nil)
		}
		if slices.Contains(pairs, p) {
			return nil, invalid("symbols", fmt.Sprintf("names %s more than once", p), nil)
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// order reads the optional parameter `exchanges`; nil means all in their configured order.
func (s *Server) order(q *query) ([]market.ExchangeID, error) {
	v, ok := q.get("exchanges")
	if !ok {
		return nil, nil
	}
	parts, err := list("exchanges", v, maxExchanges)
	if err != nil {
		return nil, err
	}
	ids := make([]market.ExchangeID, 0, len(parts))
	for _, name := range parts {
		id := market.ExchangeID(name)
		if !slices.Contains(s.exchangeIDs, id) {
			return nil, s.unknownExchange("exchanges", "exchanges")
		}
		if slices.Contains(ids, id) {
			return nil, invalid("exchanges", "names "+name+" more than once", nil)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// list splits at commas; empty items and more than limit are refused before anything is kept.
func list(name, v string, limit int) ([]string, error) {
	if n := strings.Count(v, ",") + 1; n > limit {
		return nil, invalid(name, fmt.Sprintf("has %d items; at most %d are allowed", n, limit), nil)
	}
	parts := strings.Split(v, ",")
	if slices.Contains(parts, "") {
		return nil, invalid(name, "has an empty item", nil)
	}
	return parts, nil
}

// depth reads the optional parameter `depth`.
func (q *query) depth(fallback, limit int) (int, error) {
	v, ok := q.get("depth")
	if !ok {
		return fallback, nil
	}
	n, ok := digits(v)
	if !ok || n < 1 || n > int64(limit) {
		return 0, invalid("depth", "is not an integer from 1 to "+strconv.Itoa(limit), nil)
	}
	return int(n), nil
}

// maxAge reads the optional parameter `max_age_ms`.
func (q *query) maxAge() (gateway.Age, error) { return q.age("max_age_ms") }

// age reads an optional parameter that is an age in milliseconds.
func (q *query) age(name string) (gateway.Age, error) {
	v, ok := q.get(name)
	if !ok {
		return gateway.Age{}, nil
	}
	n, ok := digits(v)
	if !ok || n > maxAgeMillis {
		return gateway.Age{}, invalid(name, "is not an integer of milliseconds from 0 to "+strconv.Itoa(maxAgeMillis), nil)
	}
	return gateway.MaxAge(time.Duration(n) * time.Millisecond), nil
}

// requireLive reads the optional parameter `require`.
func (q *query) requireLive() (bool, error) {
	v, ok := q.get("require")
	if ok && v != "live" {
		return false, invalid("require", "has an unknown value", []string{"live"})
	}
	return ok, nil
}

// account reads the optional parameter `account`.
func (q *query) account() (string, error) {
	v, ok := q.get("account")
	if ok && !plainName(v) {
		return "", invalid("account", "is not the name of an account: letters, digits, dot, dash and underscore, at most 64", nil)
	}
	return v, nil
}

// wallet reads the optional parameter `wallet`.
func (q *query) wallet() (market.Wallet, error) {
	v, ok := q.get("wallet")
	if !ok {
		return market.WalletTrading, nil
	}
	switch w := market.Wallet(v); w {
	case market.WalletTrading, market.WalletFunding:
		return w, nil
	}
	return "", invalid("wallet", "has an unknown value", []string{string(market.WalletTrading), string(market.WalletFunding)})
}

// digits reads a plain decimal integer: no sign, no space, no underscore, at most 15 digits.
func digits(s string) (int64, bool) {
	if s == "" || len(s) > 15 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// plainName tells whether s can be the name of an exchange or account in our configuration.
func plainName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
