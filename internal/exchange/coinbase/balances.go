package coinbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

const (
	portfolioPath = "/api/v3/brokerage/accounts"
	// portfolioLimit is the most rows a page (list-accounts page); the default is 49, and clients that read one page
	// lost balances (ccxt/ccxt#19844, #23896, #21399, #8033).
	portfolioLimit = "250"
	// maxPages bounds a list of accounts at 10,000 rows. Nobody has so many; a list that goes on is a cursor that lies.
	maxPages = 40

	profilePath = "/accounts"
)

var (
	errPages      = errors.New("the list of accounts does not end")
	errCursor     = errors.New("a page says that there is more but not where, or where we have been")
	errAgain      = errors.New("an account is listed twice: the list moved while it was read")
	errAmount     = errors.New("an amount cannot be read")
	errCurrency   = errors.New("an account does not name its currency, or two")
	errNoAccounts = errors.New("a profile always lists all currencies, and this one lists none")
)

// fetchPortfolio reads all pages of the portfolio that the key is bound to (Advanced Trade). The order of rows is not
// specified, and the pages are not one moment; a row that shows up twice fails the call rather than count twice.
func fetchPortfolio(ctx context.Context, a *account) (*market.Balances, error) {
	q := a.question()
	sum := newTally()
	b := &market.Balances{Exchange: a.venue.id, AccountType: "portfolio"}
	var next string
	visited := map[string]bool{"": true}
	for page := 1; ; page++ {
		query := "limit=" + portfolioLimit
		if next != "" {
			query = "cursor=" + url.QueryEscape(next) + "&" + query
		}
		err := a.venue.client.Do(ctx, a.request(portfolioPath, query), func(r *exchange.Response) *market.Error {
			if !success(r) {
				a.suspectClock(r)
				return q.reject(r, errStatus)
			}
			p, err := decodePortfolio(r.Body)
			if err == nil {
				err = sum.addPortfolio(p.Accounts)
			}
			if err == nil && p.HasNext && visited[p.Cursor] {
				err = errCursor
			}
			if err == nil && p.HasNext && page == maxPages {
				err = errPages
			}
			if err != nil {
				return q.reject(r, err)
			}
			next = ""
			if p.HasNext {
				next = p.Cursor
				visited[next] = true
			}
			seen(b, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if next == "" {
			a.pages.Store(int64(page))
			sum.into(b)
			return b, nil
		}
	}
}

// fetchProfile reads the profile that the key is bound to (Exchange): one answer with every currency, zeros included.
func fetchProfile(ctx context.Context, a *account) (*market.Balances, error) {
	q := a.question()
	sum := newTally()
	b := &market.Balances{Exchange: a.venue.id, AccountType: "profile"}
	err := a.venue.client.Do(ctx, a.request(profilePath, ""), func(r *exchange.Response) *market.Error {
		if !success(r) {
			return q.reject(r, errStatus)
		}
		rows, err := decodeProfile(r.Body)
		if err == nil {
			err = sum.addProfile(rows)
		}
		if err != nil {
			return q.reject(r, err)
		}
		seen(b, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum.into(b)
	return b, nil
}

// seen widens the span in which the answer was true by one page.
func seen(b *market.Balances, r *exchange.Response) {
	if b.RequestedAt.IsZero() {
		b.RequestedAt = r.SentAt
	}
	b.ReceivedAt = r.ReceivedAt
}

// portfolio is one page of accounts of Advanced Trade. has_next and cursor are missing in old answers: the last page.
type portfolio struct {
	Accounts []portfolioRow `json:"accounts"`
	HasNext  bool           `json:"has_next"`
	Cursor   string         `json:"cursor"`
}

type portfolioRow struct {
	ID        string          `json:"uuid"`
	Currency  string          `json:"currency"`
	Available amount          `json:"available_balance"`
	Hold      amount          `json:"hold"`
	Active    *bool           `json:"active"`
	Type      string          `json:"type"`
	Updated   string          `json:"updated_at"`
	Deleted   json.RawMessage `json:"deleted_at"`
}

// amount is read only of rows that count, so an odd one of a deleted account spoils nothing.
type amount struct {
	Value    json.RawMessage `json:"value"`
	Currency string          `json:"currency"`
}

func decodePortfolio(b []byte) (portfolio, error) {
	var p portfolio
	if err := json.Unmarshal(b, &p); err != nil {
		return p, notJSON(err)
	}
	if p.Accounts == nil {
		return p, fmt.Errorf("%w: accounts", errMissing)
	}
	return p, nil
}

// counts tells whether a row is money that can be traded with: in use, and a wallet of coins or cash. Vaults and
// derivatives are other places.
func (r portfolioRow) counts() bool {
	if r.Active != nil && !*r.Active || len(r.Deleted) > 0 && string(r.Deleted) != "null" {
		return false
	}
	switch r.Type {
	case "ACCOUNT_TYPE_CRYPTO", "ACCOUNT_TYPE_FIAT", "CRYPTO", "FIAT", "":
		return true
	}
	return false
}

// profileRow is one account of Exchange.
type profileRow struct {
	ID        string          `json:"id"`
	Currency  string          `json:"currency"`
	Balance   json.RawMessage `json:"balance"`
	Hold      json.RawMessage `json:"hold"`
	Available json.RawMessage `json:"available"`
}

func decodeProfile(b []byte) ([]profileRow, error) {
	var rows []profileRow
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, notJSON(err)
	}
	if len(rows) == 0 {
		return nil, errNoAccounts
	}
	return rows, nil
}

// tally sums accounts by currency, exactly and each account once.
type tally struct {
	rows    map[string]market.Balance
	ids     map[string]bool
	updated time.Time
}

func newTally() *tally {
	return &tally{rows: make(map[string]market.Balance), ids: make(map[string]bool)}
}

// addPortfolio adds the rows of a page. total is free and hold together: what is available excludes the hold.
func (t *tally) addPortfolio(rows []portfolioRow) error {
	for _, r := range rows {
		if r.ID != "" && t.ids[r.ID] {
			return errAgain
		}
		t.ids[r.ID] = true
		if !r.counts() {
			continue
		}
		if r.Available.Currency != "" && r.Available.Currency != r.Currency || r.Hold.Currency != "" && r.Hold.Currency != r.Currency {
			return errCurrency
		}
		free, used, err := numbers(r.Available.Value, r.Hold.Value)
		if err != nil {
			return err
		}
		row := market.Balance{Asset: r.Currency, Free: free, Used: used, Total: plus(free, used)}
		if err := t.add(row); err != nil {
			return err
		}
		if at, err := parseTime(r.Updated); err == nil && at.After(t.updated) {
			t.updated = at
		}
	}
	return nil
}

// addProfile adds the rows of a profile, whose total is the exchange's own.
func (t *tally) addProfile(rows []profileRow) error {
	for _, r := range rows {
		if r.ID != "" && t.ids[r.ID] {
			return errAgain
		}
		t.ids[r.ID] = true
		free, used, err := numbers(r.Available, r.Hold)
		if err != nil {
			return err
		}
		total, err := number(r.Balance)
		if err != nil {
			return err
		}
		if err := t.add(market.Balance{Asset: r.Currency, Free: free, Used: used, Total: total}); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) add(b market.Balance) error {
	if b.Asset == "" {
		return errCurrency
	}
	if old, ok := t.rows[b.Asset]; ok {
		b.Free, b.Used, b.Total = plus(old.Free, b.Free), plus(old.Used, b.Used), plus(old.Total, b.Total)
	}
	t.rows[b.Asset] = b
	return nil
}

// into writes the rows that are not zero, by asset.
func (t *tally) into(b *market.Balances) {
	b.UpdatedAt = t.updated
	b.Rows = make([]market.Balance, 0, len(t.rows))
	for _, row := range t.rows {
		if !row.Free.IsZero() || !row.Used.IsZero() || !row.Total.IsZero() {
			b.Rows = append(b.Rows, row)
		}
	}
	slices.SortFunc(b.Rows, func(x, y market.Balance) int { return strings.Compare(x.Asset, y.Asset) })
}

func numbers(a, b json.RawMessage) (x, y market.Number, err error) {
	if x, err = number(a); err == nil {
		y, err = number(b)
	}
	return x, y, err
}

// number reads an amount. Its text stays out of the error: it is somebody's balance.
func number(b json.RawMessage) (market.Number, error) {
	var n market.Number
	if len(b) == 0 || n.UnmarshalJSON(b) != nil {
		return n, errAmount
	}
	return n, nil
}

func plus(a, b market.Number) market.Number {
	return market.NumberOf(a.Decimal().Add(b.Decimal()))
}
