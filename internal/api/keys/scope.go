package keys

import (
	"fmt"
	"slices"
	"strings"

	"exchange-gateway/internal/market"
)

// The closed set of scopes. account:read may be narrowed to one exchange, `account:read:binance`, or to one account of
// it, `account:read:binance/main`.
const (
	MarketRead  = "market:read"
	AccountRead = "account:read"
	OpsRead     = "ops:read"
	OpsWrite    = "ops:write"
)

// Scopes say what a key may do. The zero value may do nothing.
type Scopes struct{ all []string }

// ParseScopes reads scopes and returns them sorted, each once.
func ParseScopes(texts ...string) (Scopes, error) {
	for _, s := range texts {
		if err := validScope(s); err != nil {
			return Scopes{}, err
		}
	}
	all := slices.Clone(texts)
	slices.Sort(all)
	return Scopes{all: slices.Compact(all)}, nil
}

func validScope(s string) error {
	switch s {
	case MarketRead, AccountRead, OpsRead, OpsWrite:
		return nil
	}
	if target, ok := strings.CutPrefix(s, AccountRead+":"); ok {
		exchange, account, narrow := strings.Cut(target, "/")
		if validName(exchange) && (!narrow || validName(account)) {
			return nil
		}
	}
	if strings.Contains(s, prefix) || len(s) >= minSecret && !strings.Contains(s, ":") || len(s) > 80 {
		s = "" // it may be a key or its secret: do not show it
	}
	return fmt.Errorf("unknown scope %q: write %s, %s, %s:EXCHANGE, %s:EXCHANGE/ACCOUNT, %s or %s",
		s, MarketRead, AccountRead, AccountRead, AccountRead, OpsRead, OpsWrite)
}

func validName(s string) bool {
	ok := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return !ok(r) })
}

// Targets lists the exchanges, and the accounts of them, that scopes are narrowed to. An account is "" for a whole exchange.
func (s Scopes) Targets() []Target {
	var all []Target
	for _, scope := range s.all {
		if target, ok := strings.CutPrefix(scope, AccountRead+":"); ok {
			exchange, account, _ := strings.Cut(target, "/")
			all = append(all, Target{Exchange: market.ExchangeID(exchange), Account: account})
		}
	}
	return all
}

// Target is what a narrowed scope is about.
type Target struct {
	Exchange market.ExchangeID
	Account  string // "" for every account of the exchange
}

// IsZero tells whether nothing is allowed.
func (s Scopes) IsZero() bool { return len(s.all) == 0 }

// Strings are the scopes in their text form, sorted.
func (s Scopes) Strings() []string { return slices.Clone(s.all) }

// Has tells whether a scope that is not about an account is allowed. Who may act may look: ops:write includes ops:read.
func (s Scopes) Has(scope string) bool {
	return slices.Contains(s.all, scope) || scope == OpsRead && slices.Contains(s.all, OpsWrite)
}

// Account tells whether the balances of one account may be read.
func (s Scopes) Account(exchange market.ExchangeID, name string) bool {
	return slices.ContainsFunc(s.all, func(scope string) bool {
		rest, ok := strings.CutPrefix(scope, AccountRead)
		if !ok || rest == "" {
			return ok
		}
		ex, account, narrow := strings.Cut(rest[1:], "/")
		return ex == string(exchange) && (!narrow || account == name)
	})
}

// Accounts lists the accounts of an exchange whose balances may be read by name; every is true, and there is no list, if
// that is all of them.
func (s Scopes) Accounts(exchange market.ExchangeID) (names []string, every bool) {
	for _, scope := range s.all {
		rest, ok := strings.CutPrefix(scope, AccountRead)
		switch {
		case !ok:
		case rest == "" || rest[1:] == string(exchange):
			return nil, true
		default:
			if ex, account, narrow := strings.Cut(rest[1:], "/"); narrow && ex == string(exchange) {
				names = append(names, account)
			}
		}
	}
	return names, false
}
