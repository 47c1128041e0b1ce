package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/market"
)

func TestAppendTime_isRFC3339(t *testing.T) {
	for _, in := range []time.Time{
		t0, t0.Add(-123 * time.Millisecond), time.UnixMilli(1).UTC(), time.Date(1, 1, 1, 0, 0, 0, 7e6, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Date(12026, 1, 2, 3, 4, 5, 0, time.UTC),
		time.Date(2024, 2, 29, 12, 0, 0, 1e6, time.UTC),
	} {
		got, want := string(api.AppendTime(nil, in)), in.Format("2006-01-02T15:04:05.000Z")
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzQuoted: what is written reads back as the same text, with bytes that are no UTF-8 replaced as encoding/json does, and without what turns a line.
func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "BTC/USDT", "币安人生", `a"b\c`, "\x00\n\u2028", "\xff\xfe\xed\xa0\x80", "a\xffb", "a\u202eb\u2066"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := api.AppendQuoted(nil, s)
		var got, want string
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%q became %s: %v", s, text, err)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if want = market.Straight(want); got != want {
			t.Fatalf("%q reads back as %q, want %q", s, got, want)
		}
		if strings.ContainsAny(string(text), "\n\r\x00") {
			t.Fatalf("%q has a control character", text)
		}
	})
}
