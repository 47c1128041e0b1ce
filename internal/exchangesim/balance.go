package exchangesim

import "fmt"

// holding is a Balance made ready for computing.
type holding struct {
	asset        string
	free, locked amount
	debt         amount
}

func (h holding) total() amount { return h.free.add(h.locked) }

// equity is the total less what is owed.
func (h holding) equity() amount { return h.total().sub(h.debt) }
func (h holding) isZero() bool   { return h.free.isZero() && h.locked.isZero() && h.debt.isZero() }

func newHoldings(balances []Balance) ([]holding, error) {
	out := make([]holding, 0, len(balances))
	for _, b := range balances {
		free, err := parseAmount(b.Free)
		if err != nil {
			return nil, fmt.Errorf("balance of %s: %w", b.Asset, err)
		}
		locked, err := parseAmount(b.Locked)
		if err != nil {
			return nil, fmt.Errorf("balance of %s: %w", b.Asset, err)
		}
		debt, err := parseAmount(b.Debt)
		if err != nil {
			return nil, fmt.Errorf("balance of %s: %w", b.Asset, err)
		}
		if b.Asset == "" || free.n.Sign() < 0 || locked.n.Sign() < 0 || debt.n.Sign() < 0 {
			return nil, fmt.Errorf("balance of %q: an asset and amounts from zero up are needed", b.Asset)
		}
		out = append(out, holding{asset: b.Asset, free: free, locked: locked, debt: debt})
	}
	return out, nil
}

// defaultBalances is the account behind a credential that names none: money, locked money, dust, a huge amount and, like every real
// answer of Binance and Coinbase, many rows of zero.
func defaultBalances(quote string) []Balance {
	out := []Balance{
		{Asset: "BTC", Free: "1.23456789", Locked: "0.005"},
		{Asset: quote, Free: "10000.5", Locked: "450"},
		{Asset: "ETH", Free: "12.5", Locked: "0"},
		{Asset: "SOL", Free: "0", Locked: "7.25"},
		{Asset: "1INCH", Free: "0.00000001", Locked: "0"},
		{Asset: "SHIB", Free: "123456789012", Locked: "0.00000001"},
	}
	for i := range 64 {
		out = append(out, Balance{Asset: fmt.Sprintf("ZERO%02d", i), Free: "0"})
	}
	return out
}

// defaultFunding is the OKX funding account of such a credential.
func defaultFunding() []Balance {
	return []Balance{{Asset: "USDT", Free: "250.75", Locked: "0"}, {Asset: "ETH", Free: "37.11827078", Locked: "1.5"}, {Asset: "TUSD", Free: "100", Locked: "0"}}
}
