package okx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxBalanceBody bounds a wallet: a currency of the trading account is 900 bytes, and OKX lists some 350.
const maxBalanceBody = 4 << 20

// Account is one credential. It keeps no answer. Safe for concurrent use.
type Account struct {
	venue      *Venue
	name       string
	credential market.Credential
}

var (
	errName     = errors.New("an account needs a name")
	errTooMany  = fmt.Errorf("more than %d accounts", maxAccounts)
	errNoWallet = errors.New("no such wallet")
)

// Account binds a credential. It does no I/O. Binding a name again replaces it.
func (v *Venue) Account(name string, c market.Credential) (market.VenueAccount, error) {
	if name == "" {
		return nil, fmt.Errorf("%s: %w", v.id, errName)
	}
	if err := checkCredential(c); err != nil {
		return nil, fmt.Errorf("%s: account %.60q: %w", v.id, name, err)
	}
	a := &Account{venue: v, name: name, credential: c}
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := slices.IndexFunc(v.accounts, func(b *Account) bool { return b.name == name }); i >= 0 {
		v.accounts[i] = a
		return a, nil
	}
	if len(v.accounts) == maxAccounts {
		return nil, fmt.Errorf("%s: %w", v.id, errTooMany)
	}
	v.accounts = append(v.accounts, a)
	return a, nil
}

// ledger is one place where OKX keeps money. The two are separate books with separate calls, and an internal transfer
// between two calls shows twice or not at all, so they are never added up.
type ledger struct {
	path   string
	limit  market.LimitID
	name   string
	decode func(*Venue, market.Call, *exchange.Response) (*market.Balances, *market.Error)
}

func ledgerOf(w market.Wallet) (ledger, bool) {
	switch w {
	case market.WalletTrading:
		return ledger{path: pathTrading, limit: limitTrading, name: "trading", decode: tradingBalances}, true
	case market.WalletFunding:
		return ledger{path: pathFunding, limit: limitFunding, name: "funding", decode: fundingBalances}, true
	}
	return ledger{}, false
}

// Balances asks for the non-zero rows of one wallet, in one request without pages. Deposits land in the funding wallet:
// an account "with money" can have an empty trading wallet.
func (a *Account) Balances(ctx context.Context, w market.Wallet) (*market.Balances, error) {
	l, ok := ledgerOf(w)
	if !ok {
		return nil, &market.Error{
			Exchange: a.venue.id, Op: market.OpBalances, Kind: market.KindNotSupported, Err: errNoWallet,
		}
	}
	if err := a.venue.synced(ctx); err != nil {
		return nil, err
	}
	call := a.Plan(w)
	var balances *market.Balances
	err := a.venue.client.Do(ctx, exchange.Request{
		Call: call, Hosts: a.venue.signed, Path: l.path, Sign: a.sign, MaxBody: maxBalanceBody,
	}, func(r *exchange.Response) *market.Error {
		b, bad := l.decode(a.venue, call, r)
		if bad != nil {
			if bad.Kind == market.KindClockSkew {
				a.venue.clock.Doubt()
			}
			return bad
		}
		b.Exchange, b.AccountType, b.RequestedAt, b.ReceivedAt = a.venue.id, l.name, r.SentAt, r.ReceivedAt
		balances = b
		return nil
	})
	if err != nil {
		return nil, err
	}
	return balances, nil
}

// wireTrading is the one row of the trading account. Its totals are in USD and of no use here. Details has only
// currencies with a balance; an empty account has an empty list, never none.
type wireTrading struct {
	Details *[]json.RawMessage `json:"details"`
}

// wireDetail is one currency of the trading account. Without a debt, cash balance and equity say only that the row is one:
// neither is free plus used where there are open derivatives or bots. What a spot account does not have is "" in it.
type wireDetail struct {
	Currency  text `json:"ccy"`
	Free      text `json:"availBal"`
	FreeOld   text `json:"availEq"` // stands for availBal on answers of 2021 for multi-currency accounts
	Used      text `json:"frozenBal"`
	Cash      text `json:"cashBal"`
	Equity    text `json:"eq"`
	Owed      text `json:"liab"`
	Interest  text `json:"interest"`
	UpdatedAt text `json:"uTime"` // the last change of this currency; can be years old
}

// balance converts one currency; held tells whether any of its amounts is not zero. Of a currency that is owed nothing may
// be available or frozen: free plus used would then say zero, or what was borrowed, so the total is the equity.
func (w wireDetail) balance() (b market.Balance, held bool, err error) {
	if w.Free == "" {
		w.Free = w.FreeOld
	}
	b, r := market.Balance{Asset: string(w.Currency)}, amounts{}
	b.Free, b.Used = r.read(w.Free), r.read(w.Used)
	cash, equity, owed, interest := r.maybe(w.Cash), r.maybe(w.Equity), r.maybe(w.Owed), r.maybe(w.Interest)
	b.Total = market.NumberOf(b.Free.Decimal().Add(b.Used.Decimal()))
	switch {
	case !owed.IsZero():
		if owed.Sign() < 0 {
			owed = market.NumberOf(owed.Decimal().Neg())
		}
		b.Debt = market.Some(owed)
		b.Total = r.read(w.Equity)
	case equity.Sign() < 0:
		b.Total = equity
	}
	if r.bad {
		return b, false, fmt.Errorf("%w: %s", errAmount, b.Asset)
	}
	return b, !b.IsZero() || !cash.IsZero() || !equity.IsZero() || !interest.IsZero(), nil
}

// amounts reads the amounts of one row and remembers whether one could not be read.
type amounts struct{ bad bool }

func (r *amounts) read(t text) market.Number {
	n, ok := t.number()
	r.bad = r.bad || !ok
	return n
}

// maybe reads an amount that need not be there: "" is zero.
func (r *amounts) maybe(t text) market.Number {
	if t == "" {
		return market.Number{}
	}
	return r.read(t)
}

// wireFunding is one currency of the funding account. Nothing can be owed there.
type wireFunding struct {
	Currency text `json:"ccy"`
	Free     text `json:"availBal"`
	Used     text `json:"frozenBal"`
	Total    text `json:"bal"`
}

func (w wireFunding) balance() (b market.Balance, held bool, err error) {
	b, r := market.Balance{Asset: string(w.Currency)}, amounts{}
	b.Free, b.Used, b.Total = r.read(w.Free), r.read(w.Used), r.read(w.Total)
	if r.bad {
		return b, false, fmt.Errorf("%w: %s", errAmount, b.Asset)
	}
	return b, !b.IsZero(), nil
}

var (
	errNoDetails = errors.New("the answer has no list of balances")
	errCurrency  = errors.New("a row without a readable currency")
	errTwice     = errors.New("the same currency twice")
	errAmount    = errors.New("an amount that cannot be read")
)

// tradingBalances reads /account/balance.
func tradingBalances(v *Venue, call market.Call, r *exchange.Response) (*market.Balances, *market.Error) {
	account, bad := one[wireTrading](v, call, r)
	if bad != nil {
		return nil, bad
	}
	if account.Details == nil {
		return nil, v.malformed(call, r, errNoDetails)
	}
	var s sheet
	for _, raw := range *account.Details {
		var w wireDetail
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, v.malformed(call, r, shapeOf(err))
		}
		if err := s.add(w.balance()); err != nil {
			return nil, v.malformed(call, r, err)
		}
		if at, ok := w.UpdatedAt.millis(); ok && at.After(s.updatedAt) {
			s.updatedAt = at
		}
	}
	return s.balances(), nil
}

// fundingBalances reads /asset/balances.
func fundingBalances(v *Venue, call market.Call, r *exchange.Response) (*market.Balances, *market.Error) {
	rows, bad := decode[wireFunding](v, call, r)
	if bad != nil {
		return nil, bad
	}
	var s sheet
	for _, w := range rows {
		if err := s.add(w.balance()); err != nil {
			return nil, v.malformed(call, r, err)
		}
	}
	return s.balances(), nil
}

// sheet collects the rows of one wallet. An amount that cannot be read, and be it of one currency, spoils it all: a
// missing row would read as zero.
type sheet struct {
	rows      []market.Balance
	seen      map[string]bool
	updatedAt time.Time
}

// add takes one row. Rows that hold nothing are checked and left out.
func (s *sheet) add(row market.Balance, held bool, unreadable error) error {
	if !isCurrency(row.Asset) {
		return errCurrency
	}
	if s.seen[row.Asset] {
		return fmt.Errorf("%w: %s", errTwice, row.Asset)
	}
	if s.seen == nil {
		s.seen = make(map[string]bool)
	}
	s.seen[row.Asset] = true
	if unreadable != nil {
		return unreadable
	}
	if held {
		s.rows = append(s.rows, row)
	}
	return nil
}

func (s *sheet) balances() *market.Balances {
	return &market.Balances{Rows: s.rows, UpdatedAt: s.updatedAt}
}

// isCurrency accepts what a pair could be made of, so that no odd text of an answer becomes the name of an asset.
func isCurrency(s string) bool {
	_, err := market.ParsePair(s + "/" + s)
	return err == nil
}
