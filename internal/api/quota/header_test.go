package quota_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/keys"
)

func TestClient_headers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(t, keys.Client{})
		if got := c.RateLimitPolicy(); got != `"requests";q=100;w=1, "upstream";q=2000;w=60` {
			t.Errorf("policy %s", got)
		}
		f := func(want string) {
			t.Helper()
			v := c.Request(time.Now())
			if got := string(c.AppendRateLimit([]byte("x"), v, time.Now())); got != "x"+want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		f(`"requests";r=99;t=1, "upstream";r=2000;t=0`)
		c.Spend(500)
		for range 62 {
			c.Request(time.Now())
		}
		f(`"requests";r=36;t=1, "upstream";r=1500;t=15`)
		c.Spend(3500) // owes 2,000 units: a minute, and one unit's time
		f(`"requests";r=35;t=1, "upstream";r=0;t=61`)
		if wait, _ := c.Afford(); wait != time.Minute+30*time.Millisecond {
			t.Errorf("wait %v", wait)
		}
	})
}

func BenchmarkClient_AppendRateLimit(b *testing.B) {
	c := one(b, keys.Client{})
	v := c.Request(time.Now())
	buf := make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf = c.AppendRateLimit(buf[:0], v, time.Now())
	}
}
