package exchangesim

import "fmt"

// holding is a Balance made ready for computing.
type holding struct {
	asset        string
	free, locked amount
}

func (h holding) total() amount { return h.free.add(h.locked) }
func (h holding) isZero() bool  { return h.free.isZero() && h.locked.isZero() }

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
		if b.Asset == "" || free.n.Sign() < 0 || locked.n.Sign() < 0 {
			return nil, fmt.Errorf("balance of %q: an asset and amounts from zero up are needed", b.Asset)
		}
		out = append(out, holding{asset: b.Asset, free: free, locked: locked})
	}
	return out, nil
}

// defaultBalances is the account behind a credential that names none: money, locked money, dust, a huge amount and, like every real
// answer of Binance and Coinbase, many rows of zero.
func defaultBalances(quote string) []Balance {
	out := []Balance{
		{"BTC", "1.23456789", "0.005"},
		{quote, "10000.5", "450"},
		{"ETH", "12.5", "0"},
		{"SOL", "0", "7.25"},
		{"1INCH", "0.00000001", "0"},
		{"SHIB", "123456789012", "0.00000001"},
	}
	for i := range 64 {
		out = append(out, Balance{Asset: fmt.Sprintf("ZERO%02d", i), Free: "0"})
	}
	return out
}

// defaultFunding is the OKX funding account of such a credential.
func defaultFunding() []Balance {
	return []Balance{{"USDT", "250.75", "0"}, {"ETH", "37.11827078", "1.5"}, {"TUSD", "100", "0"}}
}
