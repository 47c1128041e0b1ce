package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"exchange-gateway/internal/gateway"
)

// balance answers GET /v1/exchanges/{exchange}/balance: live, or an error.
func (s *Server) balance(ctx context.Context, c *call, r *http.Request, q *query) error {
	var ask gateway.BalanceQuery
	var err error
	if ask.Exchange, err = s.exchange(c, r); err != nil {
		return err
	}
	if ask.Account, err = q.account(); err != nil {
		return err
	}
	if ask.Wallet, err = q.wallet(); err != nil {
		return err
	}
	ccxt, err := q.ccxt()
	if err != nil {
		return err
	}
	if err := s.account(c, &ask); err != nil {
		return err
	}
	b, err := s.cfg.Accounts.Balances(ctx, ask)
	if err != nil {
		return err
	}
	if !c.key.Scopes.Account(ask.Exchange, b.Account) {
		return forbiddenAccount(ask.Exchange) // an account that was left out turned out to be another's
	}
	if ccxt {
		appendCCXTBalances(&c.doc, b)
	} else {
		appendBalances(&c.doc, b)
	}
	c.send(http.StatusOK, jsonType)
	return nil
}

// account settles whose balance is meant before anybody is asked. A key that may read some accounts only sees those:
// without a name the one of them that has the wallet is meant, and the names of the others, or whether they exist, are
// not told.
func (s *Server) account(c *call, ask *gateway.BalanceQuery) error {
	mine, every := c.key.Scopes.Accounts(ask.Exchange)
	switch {
	case every, ask.Account != "" && slices.Contains(mine, ask.Account):
		return nil
	case ask.Account != "" || len(mine) == 0:
		return forbiddenAccount(ask.Exchange)
	}
	has := s.cfg.Accounts.Names(ask.Exchange, ask.Wallet)
	fit := slices.DeleteFunc(slices.Clone(mine), func(name string) bool { return !slices.Contains(has, name) })
	switch len(fit) {
	case 0:
		ask.Account = mine[0] // the policy says what is missing
	case 1:
		ask.Account = fit[0]
	default:
		return &requestError{
			code: Code(gateway.CodeAccountAmbiguous), exchange: ask.Exchange, parameter: "account", allowed: fit,
			detail: "Several accounts fit; add account= with one of: " + strings.Join(fit, ", ") + ".",
		}
	}
	return nil
}

func appendBalances(d *doc, b *gateway.BalanceAnswer) {
	d.open('{')
	d.str("exchange", string(b.Exchange))
	d.str("account", b.Account)
	d.str("account_type", b.AccountType)
	d.object("balances")
	for i := range b.Rows {
		row := &b.Rows[i]
		d.text(row.Asset)
		d.b = append(d.b, ':', '{')
		d.number("free", row.Free)
		d.number("used", row.Used)
		d.number("total", row.Total)
		if debt, owed := row.Debt.Get(); owed {
			d.number("debt", debt)
		}
		d.close('}')
	}
	d.close('}')
	d.time("requested_at", b.RequestedAt)
	d.time("received_at", b.ReceivedAt)
	d.epoch("timestamp", b.UpdatedAt)
	d.close('}')
}
