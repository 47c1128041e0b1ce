package coinbase_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

const advancedTime = "/api/v3/brokerage/time"

// clockAt is an answer of Exchange's /time that is off by so much.
func clockAt(off time.Duration) answer {
	return says(200, `{"iso":"`+time.Now().Add(off).UTC().Format("2006-01-02T15:04:05.000Z")+`","epoch":1.5}`)
}

// stamp is how far the time that a request is signed with is ahead of ours.
func stamp(t *testing.T, r *http.Request) time.Duration {
	t.Helper()
	s, err := strconv.ParseInt(r.Header.Get("CB-ACCESS-TIMESTAMP"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(s, 0).Sub(time.Now().Truncate(time.Second))
}

// TestClock_offset: a skew is corrected, and one that the cache in front of /time can make is not.
func TestClock_offset(t *testing.T) {
	for _, c := range []struct{ skew, want time.Duration }{
		{0, 0}, {time.Second, 0}, {-2 * time.Second, 0}, {3 * time.Second, 3 * time.Second}, {-time.Hour, -time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			v, f := newVenue(t)
			f.on("/time", clockAt(c.skew))
			if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
				t.Fatal(err)
			}
			if got := stamp(t, f.last()); got != c.want {
				t.Errorf("%v ahead: signed with %v, want %v", c.skew, got, c.want)
			}
		})
	}
}

// TestClock_agedAnswer: a time out of a cache has gone on since.
func TestClock_agedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		a := clockAt(5 * time.Second)
		a.header = map[string]string{"Age": "5"}
		f.on("/time", a)
		if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if got := stamp(t, f.last()); got != 10*time.Second {
			t.Errorf("signed %v ahead", got)
		}
	})
}

// TestClock_readOnce: before the first signed request, then every half hour, and again after the exchange refused it.
func TestClock_readOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.on("/time", clockAt(0))
		a := newAccount(t, v, exchangeKey())
		ask := func(want int) {
			t.Helper()
			_, _ = a.Balances(t.Context(), market.WalletTrading)
			if n := f.asked("/time"); n != want {
				t.Fatalf("the clock was read %d times, want %d", n, want)
			}
		}
		ask(1)
		ask(1)
		time.Sleep(29 * time.Minute)
		ask(1)
		time.Sleep(2 * time.Minute)
		ask(2)
		f.on(profilePath, says(401, `{"message":"request timestamp expired"}`))
		ask(2)
		f.on("/time", clockAt(40*time.Second))
		f.on(profilePath)
		ask(3)
		if got := stamp(t, f.last()); got != 40*time.Second {
			t.Errorf("signed %v ahead after the clock was refused, want 40s", got)
		}
		ask(3)
	})
}

// TestClock_isNoCondition: a closed gate of keyless requests, and a clock that cannot be read, leave balances alone.
func TestClock_isNoCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.refuse = func(c market.Call) error {
			for _, s := range c.Scopes {
				if s.Kind == market.ScopePublic {
					return &market.Error{Kind: market.KindRateLimited, RetryAfter: time.Second}
				}
			}
			return nil
		}
		a := newAccount(t, v, exchangeKey())
		for range 3 {
			if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.asked(profilePath); n != 3 || f.asked("/time") != 0 {
			t.Errorf("%d balances asked for", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		a := newAccount(t, v, exchangeKey())
		for _, c := range []answer{says(500, ""), says(200, "{}"), says(200, `{"iso":"yesterday"}`), says(200, `{"iso":"","epochMillis":"x"}`), html(200, "<html>")} {
			f.on("/time", c)
			for range 3 { // in a minute, it is tried once: an outage is not asked twice as often
				if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(61 * time.Second)
		}
		if n, m := f.asked("/time"), f.asked(profilePath); n != 5 || m != 15 {
			t.Errorf("the clock was asked %d times for %d balances", n, m)
		}
	})
}

// TestClock_hangs: reading the clock takes a second at most from the call that needs it.
func TestClock_hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.hang = "/time"
		began := time.Now()
		if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.hang = "/time"
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := newAccount(t, v, exchangeKey()).Balances(ctx, market.WalletTrading)
		if market.KindOf(err) != market.KindTimeout || f.asked(profilePath) != 0 {
			t.Errorf("%v, and %d signed requests for a caller whose time is over", err, f.asked(profilePath))
		}
		if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if n := f.asked("/time"); n != 2 {
			t.Errorf("the clock was asked %d times: the first caller's hurry says nothing about it", n)
		}
	})
}

// TestClock_afterA401: Advanced Trade does not say what is wrong with a token. A Date that is far from our time does.
func TestClock_afterA401(t *testing.T) {
	for off, want := range map[time.Duration]int{0: 1, time.Second: 1, 3 * time.Second: 1, -4 * time.Second: 2, -time.Minute: 2, time.Hour: 2} {
		synctest.Test(t, func(t *testing.T) {
			v, f := newVenue(t)
			f.on(advancedTime, says(200, fmt.Sprintf(`{"iso":"x","epochMillis":%d}`, time.Now().UnixMilli())))
			denied := plain(401, "Unauthorized")
			denied.header["Date"] = time.Now().Add(off).UTC().Format(http.TimeFormat)
			f.on(portfolioPath, denied)
			a := newAccount(t, v, advancedKey())
			for range 2 {
				_, err := a.Balances(t.Context(), market.WalletTrading)
				if e := asError(t, err); e.Kind != market.KindAuth || e.RetryOnceAfter != time.Second {
					t.Fatal(err)
				}
			}
			if n := f.asked(advancedTime); n != want {
				t.Errorf("Date off by %v: the clock was read %d times, want %d", off, n, want)
			}
		})
	}
}
