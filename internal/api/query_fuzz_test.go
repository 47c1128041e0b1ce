package api_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"exchange-gateway/internal/api"
)

// FuzzParseQuery: a query is either one whose parameters are all allowed and each there once, or an error that fits an
// answer and repeats no key.
func FuzzParseQuery(f *testing.F) {
	for _, raw := range []string{
		"", "symbol=BTC/USDT", "symbol=BTC%2FUSDT&depth=5", "depth=5&depth=6", "max_age_ms=0&require=live", "&&symbol=a&", "=", "=a", "a", "symbol",
		"symbol=%zz", "%zz=1", "symbol=a;depth=5", "sy%6dbol=a", "symbol=a+b", "symbol=%00", "symbol=\xff", "symbol=gw_abcd1234_0000000000000000000000fake",
		"key=%67w_abcd1234_0000000000000000000000fake", "gw_abcd1234_0000000000000000000000fake", strings.Repeat("depth=5&", 100), strings.Repeat("a", 300) + "=1",
	} {
		f.Add(raw)
	}
	allowed := []string{"symbol", "depth", "max_age_ms", "require"}
	f.Fuzz(func(t *testing.T, raw string) {
		names, values, err := api.ParseQuery(raw, allowed)
		if err != nil {
			if text := err.Error(); len(text) > 1<<10 || !utf8.ValidString(text) && utf8.ValidString(raw) || strings.Contains(text, `"gw_abcd1234_0000000000000000000000fake`) {
				t.Errorf("%q: %q", raw, text)
			}
			return
		}
		for i, name := range names {
			if !slices.Contains(allowed, name) || slices.Contains(names[:i], name) || strings.HasPrefix(values[i], "gw_") && len(values[i]) >= 28 {
				t.Errorf("%q: %q %q", raw, names, values)
			}
		}
	})
}
