package binance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// account is one key. It keeps no balances.
type account struct {
	venue *Venue
	api   *accountAPI
	scope market.Scope
	key   market.Secret
	sign  signer
}

// Account binds a key. What kind it is, HMAC, RSA or Ed25519, is told by the shape of its secret. A demo key is asked for
// at Binance's demo hosts, unless hosts are configured: then those are where it belongs.
func (v *Venue) Account(name string, c market.Credential) (market.VenueAccount, error) {
	if name == "" {
		return nil, errors.New("binance: an account needs a name")
	}
	sign, err := newSigner(c)
	if err != nil {
		return nil, fmt.Errorf("binance: account %s: %w", name, err)
	}
	a := &account{venue: v, api: v.live, scope: market.Scope{Kind: market.ScopeAccount, Name: name}, key: c.Key, sign: sign}
	if c.Demo {
		a.api = v.demo
	}
	return a, nil
}

// Plan states what a balance call touches. The request for the exchange's time that comes before the first one, and once
// in half an hour, is not in it: it weighs 1 and is taken from the limit when it is sent.
func (a *account) Plan(market.Wallet) market.Call {
	return a.venue.call(market.OpBalances, limitWeight, weightBalances, a.api.scope, a.scope)
}

// receiveWindow is how old a signed request may be when the exchange takes it up, in milliseconds. It is the documented
// default; a larger one does not help a clock that is ahead.
const receiveWindow = "5000"

// maxAccountBody bounds an account: a row is some 70 bytes, and Binance lists under a thousand assets.
const maxAccountBody = 1 << 20

// Balances asks for the spot wallet.
func (a *account) Balances(ctx context.Context, w market.Wallet) (*market.Balances, error) {
	if w != market.WalletTrading {
		return nil, &market.Error{
			Exchange: a.venue.id, Op: market.OpBalances, Kind: market.KindNotSupported,
			Err: errors.New("only the wallet trading can be read"),
		}
	}
	if err := a.ensureClock(ctx); err != nil {
		return nil, err
	}
	request := exchange.Request{
		Call: a.Plan(w), Hosts: a.api.hosts, Path: "/api/v3/account", Sign: a.complete,
		Query: "omitZeroBalances=true&recvWindow=" + receiveWindow, MaxBody: maxAccountBody,
	}
	var got *market.Balances
	err := a.venue.get(ctx, request, gates{account: a.scope, restricted: a.api.restricted}, func(res *exchange.Response) (err error) {
		if got, err = decodeBalances(res.Body); err == nil {
			got.Exchange, got.RequestedAt, got.ReceivedAt = a.venue.id, res.SentAt, res.ReceivedAt
		}
		return err
	})
	if market.KindOf(err) == market.KindClockSkew {
		a.api.clock.Doubt()
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// complete adds the time, the key and, last of all, the signature of exactly the bytes before it.
func (a *account) complete(r *http.Request) error {
	payload := fmt.Sprintf("%s&timestamp=%d", r.URL.RawQuery, a.api.clock.Now().UnixMilli())
	signature, err := a.sign(payload)
	if err != nil {
		return err
	}
	r.URL.RawQuery = payload + "&signature=" + signature
	r.Header.Set("X-MBX-APIKEY", a.key.Reveal())
	return nil
}

func (a *account) ensureClock(ctx context.Context) error {
	err := a.api.clock.Ensure(ctx)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*market.Error](err); ok {
		return e
	}
	return &market.Error{Exchange: a.venue.id, Op: market.OpTime, Kind: market.KindOf(err), Err: err}
}

type wireBalances struct {
	AccountType string         `json:"accountType"`
	UpdateTime  int64          `json:"updateTime"`
	Balances    *[]wireBalance `json:"balances"`
}

type wireBalance struct {
	Asset  string          `json:"asset"`
	Free   json.RawMessage `json:"free"`
	Locked json.RawMessage `json:"locked"`
}

var errUnreadable = errors.New("the answer is not a list of balances")

// decodeBalances reads the account. A body without balances, an amount that is missing or no number, and an asset that
// comes twice are errors: they have been taken for zero elsewhere. Errors name rows and never quote them.
//
// Assets are the exchange's own: LDUSDT is a receipt of flexible Earn and LDO is a coin, and neither is added to another.
func decodeBalances(body []byte) (*market.Balances, error) {
	var w wireBalances
	if json.Unmarshal(body, &w) != nil {
		return nil, errUnreadable
	}
	if w.Balances == nil {
		return nil, fmt.Errorf("read balances: %w", errMissing)
	}
	b := &market.Balances{AccountType: ledger(w.AccountType), UpdatedAt: stamp(w.UpdateTime)}
	seen := make(map[string]bool, len(*w.Balances))
	for i, row := range *w.Balances {
		free, okFree := amount(row.Free)
		used, okUsed := amount(row.Locked)
		if row.Asset == "" || seen[row.Asset] || !okFree || !okUsed {
			return nil, fmt.Errorf("read balances: row %d of %d has no asset, one that came before, or an amount that is no number",
				i+1, len(*w.Balances))
		}
		seen[row.Asset] = true
		if free.IsZero() && used.IsZero() {
			continue
		}
		// There is no total on the wire: locked is not a part of free.
		total := market.NumberOf(free.Decimal().Add(used.Decimal()))
		b.Rows = append(b.Rows, market.Balance{Asset: row.Asset, Free: free, Used: used, Total: total})
	}
	return b, nil
}

// amount is false for a number that is missing, empty or unreadable.
func amount(raw json.RawMessage) (n market.Number, ok bool) {
	return n, len(raw) > 0 && n.UnmarshalJSON(raw) == nil
}

// ledger is what the exchange calls the wallet: SPOT, or MARGIN for old accounts, which means the spot wallet as well.
func ledger(accountType string) string {
	if accountType == "" || len(accountType) > 32 {
		return "spot"
	}
	return strings.ToLower(accountType)
}
