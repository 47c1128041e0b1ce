package okx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// wire is a network that answers one status and body, and a door that is open. It keeps nothing, so that it can answer
// millions of times.
type wire struct {
	status int
	body   []byte
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := w.status, string(w.body)
	if r.URL.Path == "/api/v5/public/time" {
		status, body = http.StatusOK, `{"code":"0","msg":"","data":[{"ts":"1796000000500"}]}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (*wire) Admit(context.Context, market.Call) error                 { return nil }
func (*wire) Observe(context.Context, market.Call, market.Observation) {}

func wired(t testing.TB) (*wire, *okx.Venue, market.VenueAccount) {
	w := &wire{status: http.StatusOK}
	v, err := okx.New(exchange.Config{Transport: w, Door: w})
	if err != nil {
		t.Fatal(err)
	}
	return w, v, newAccount(t, v, "main", false)
}

// valid checks what holds of every error.
func valid(t *testing.T, err error) *market.Error {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if !ok || e.Kind == market.KindNone || e.Exchange != "okx" || e.Op == "" || !utf8.ValidString(e.Error()) || len(e.Error()) > 600 {
		t.Fatalf("err = %v (%T)", err, err)
	}
	if r := e.Refusal; r != nil && (r.Scope.Kind == "" || r.First <= 0 || r.Max < r.First) {
		t.Fatalf("%v closes %+v", e, *r)
	}
	return e
}

func seed(f *testing.F, names ...string) {
	for _, name := range names {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func FuzzOrderBook(f *testing.F) {
	seed(f, "http_get_books.json")
	for _, s := range []string{
		`{"code":0,"data":[{"bids":[["1","1"]],"asks":[["1","1"]]}]}`, `{"code":"0","data":[{"bids":[],"asks":[],"ts":"1","seqId":null}]}`,
		`{"code":"51001","data":[],"msg":""}`, `{"data":[{"bids":[["1e-30","0"]],"asks":[["9999999999999999999","1"]]}],"code":"0"}`,
	} {
		f.Add([]byte(s))
	}
	w, v, _ := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w.body = body
		book, err := v.OrderBook(context.Background(), btc, 400)
		if err != nil {
			if valid(t, err); book != nil {
				t.Fatal("an error came with a book")
			}
			return
		}
		bids, asks := book.Bids(), book.Asks()
		for i, l := range bids {
			if l.Price.Sign() <= 0 || l.Size.Sign() <= 0 || i > 0 && l.Price.Cmp(bids[i-1].Price) >= 0 {
				t.Fatalf("bid %d is %v x %v", i, l.Price, l.Size)
			}
		}
		for i, l := range asks {
			if l.Price.Sign() <= 0 || l.Size.Sign() <= 0 || i > 0 && l.Price.Cmp(asks[i-1].Price) <= 0 {
				t.Fatalf("ask %d is %v x %v", i, l.Price, l.Size)
			}
		}
		if len(bids) > 0 && len(asks) > 0 && bids[0].Price.Cmp(asks[0].Price) >= 0 {
			t.Fatal("crossed")
		}
		if book.ConfirmedAt.IsZero() || book.ChangedAt.IsZero() || book.Sequence.Value < 0 || !book.ExchangeTime.IsZero() && book.ExchangeTime.UnixMilli() <= 0 {
			t.Fatalf("clocks %+v", book)
		}
	})
}

func FuzzStatistics(f *testing.F) {
	seed(f, "http_get_ticker.json")
	f.Add([]byte(`{"code":"0","data":[{"instType":"SPOT","instId":"BTC-USDT","last":"1e30","open24h":"1e-30"}]}`))
	w, v, _ := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w.body = body
		s, err := v.Statistics(context.Background(), btc)
		if err != nil {
			if valid(t, err); s != nil {
				t.Fatal("an error came with figures")
			}
			return
		}
		last, ok1 := s.Last.Get()
		open, ok2 := s.Open.Get()
		change, ok := s.Change.Get()
		if ok != (ok1 && ok2) || ok && !change.Decimal().Add(open.Decimal()).Equal(last.Decimal()) {
			t.Fatalf("change %v of %v and %v", change, last, open)
		}
		if s.Pair != btc.Pair || s.ConfirmedAt.IsZero() {
			t.Fatalf("%+v", s)
		}
	})
}

func FuzzListings(f *testing.F) {
	seed(f, "http_get_instruments.json")
	f.Add([]byte(`{"code":"0","data":[{"instType":"SPOT","instId":"A-B","tickSz":"1e30"},{"instType":"SPOT","instId":"A-B"}]}`))
	w, v, _ := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w.body = body
		all, err := exchangetest.Rows(context.Background(), v)
		if err != nil {
			if valid(t, err); all != nil {
				t.Fatal("an error came with a list")
			}
			return
		}
		pairs, symbols := make(map[market.Pair]bool), make(map[string]bool)
		for _, l := range all {
			p, err := market.ParsePair(l.Pair.String())
			if err != nil || p != l.Pair || l.Symbol == "" || l.Status == "" || pairs[l.Pair] || symbols[l.Symbol] {
				t.Fatalf("%+v", l)
			}
			pairs[l.Pair], symbols[l.Symbol] = true, true
			for _, o := range []market.Optional{l.PriceTick, l.SizeStep, l.MinSize} {
				if n, ok := o.Get(); ok && n.Sign() <= 0 {
					t.Fatalf("%+v", l)
				}
			}
		}
		if len(all) == 0 {
			t.Fatal("an empty list is no list")
		}
	})
}

func FuzzBalances(f *testing.F) {
	seed(f, "http_get_account_balance.json", "http_get_asset_balances.json")
	f.Add([]byte(`{"code":"0","data":[{"details":[{"ccy":"A","availBal":"1e-30","frozenBal":"1e30"}]}]}`))
	f.Add([]byte(`{"code":"0","data":[{"details":[{"ccy":"A","availBal":"0","frozenBal":"0","cashBal":"-1","eq":"-1","liab":"1","interest":"0.1"}]}]}`))
	f.Add([]byte(`{"code":"50102","msg":""}`))
	w, _, a := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w.body = body
		for _, wallet := range []market.Wallet{market.WalletTrading, market.WalletFunding} {
			b, err := a.Balances(context.Background(), wallet)
			if err != nil {
				if valid(t, err); b != nil {
					t.Fatal("an error came with balances")
				}
				continue
			}
			seen := make(map[string]bool)
			for _, r := range b.Rows {
				if r.Asset == "" || seen[r.Asset] || wallet == market.WalletFunding && r.IsZero() {
					t.Fatalf("%+v", r)
				}
				seen[r.Asset] = true
				if debt, owed := r.Debt.Get(); owed && (debt.Sign() <= 0 || wallet == market.WalletFunding) {
					t.Fatalf("%+v", r)
				}
				if r.Debt.IsZero() && r.Total.Sign() >= 0 && wallet == market.WalletTrading && !r.Free.Decimal().Add(r.Used.Decimal()).Equal(r.Total.Decimal()) {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}

func FuzzStatus(f *testing.F) {
	seed(f, "http_get_status.json", "http_get_status_quiet.json")
	w, v, _ := wired(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w.body = body
		s, err := v.Status(context.Background())
		if err != nil {
			valid(t, err)
			return
		}
		if s.State != market.VenueOK && s.State != market.VenueMaintenance || len(s.Message) > 200 || !utf8.ValidString(s.Message) || s.CheckedAt.IsZero() {
			t.Fatalf("%+v", s)
		}
	})
}

// FuzzErrors: any status and body is an error of a known kind or a good answer, and what a signed request carries does
// not come back in it.
func FuzzErrors(f *testing.F) {
	f.Add(429, []byte(`{"msg":"Too Many Requests","code":50011}`))
	f.Add(401, []byte(`{"code":"50110","msg":"Your IP 203.0.113.7 is not included"}`))
	f.Add(200, []byte(`{"code":"51004_1101","data":[{}],"msg":"\u0000"}`))
	f.Add(403, []byte(`<html>EXAMPLE0EXAMPLE0</html>`))
	f.Add(503, []byte(`{"message":"name resolution failed"}`))
	f.Add(302, []byte(``))
	w, v, a := wired(f)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 999 {
			return
		}
		w.status, w.body = status, body
		if book, err := v.OrderBook(context.Background(), btc, 5); err != nil {
			valid(t, err)
		} else if status > 299 || book == nil {
			t.Fatalf("HTTP %d gave a book", status)
		}
		if _, err := a.Balances(context.Background(), market.WalletTrading); err != nil {
			if e := valid(t, err); strings.Contains(e.Error(), "EXAMPLE0EXAMPLE0") {
				t.Fatalf("%v repeats the body of a signed request", e)
			}
		} else if status > 299 {
			t.Fatalf("HTTP %d gave balances", status)
		}
	})
}
