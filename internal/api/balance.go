package api

import (
	"context"
	"net/http"
	"strings"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// balance answers GET /v1/exchanges/{exchange}/balance: live, or an error.
func (s *Server) balance(ctx context.Context, c *call, r *http.Request, q *query) error {
	var ask gateway.BalanceQuery
	var err error
	if ask.Exchange, err = c.exchange(r); err != nil {
		return err
	}
	if ask.Account, err = q.account(); err != nil {
		return err
	}
	if ask.Wallet, err = q.wallet(); err != nil {
		return err
	}
	if ask.Account, err = s.account(c, ask.Exchange, ask.Account); err != nil {
		return err
	}
	b, err := s.cfg.Accounts.Balances(ctx, ask)
	if err != nil {
		return err
	}
	if !c.key.Scopes.Account(ask.Exchange, b.Account) {
		return forbiddenAccount(ask.Exchange) // an account that was left out turned out to be another's
	}
	appendBalances(&c.doc, b)
	c.send(http.StatusOK, jsonType)
	return nil
}

// account settles whose balance is meant before anybody is asked. A key that may read some accounts only sees those:
// without a name the one that it may read is meant, and the names of the others, or whether they exist, are not told.
func (s *Server) account(c *call, exchange market.ExchangeID, name string) (string, error) {
	mine, every := c.key.Scopes.Accounts(exchange)
	switch {
	case every:
		return name, nil
	case name != "" && c.key.Scopes.Account(exchange, name):
		return name, nil
	case name != "" || len(mine) == 0:
		return "", forbiddenAccount(exchange)
	case len(mine) > 1:
		return "", &requestError{code: Code(gateway.CodeAccountAmbiguous), exchange: exchange, parameter: "account", allowed: mine,
			detail: "The key may read several accounts; add account= with one of: " + strings.Join(mine, ", ") + "."}
	}
	return mine[0], nil
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
		d.close('}')
	}
	d.close('}')
	d.time("requested_at", b.RequestedAt)
	d.time("received_at", b.ReceivedAt)
	d.epoch("timestamp", b.UpdatedAt)
	d.close('}')
}
