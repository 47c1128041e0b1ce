package exchange_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// byHost answers each host as said, and with 200 otherwise.
func byHost(replies map[string]exchangetest.Reply) exchangetest.Script {
	return func(r *http.Request, _ market.Call) exchangetest.Reply { return replies[r.URL.Host[:1]] }
}

func TestDo_goesOnToTheNextHost(t *testing.T) {
	dial := exchangetest.Reply{Err: errors.New("dial: connection refused"), NoDial: true}
	reset := exchangetest.Reply{Err: errors.New("read: connection reset")}
	geo, ban, broken := exchangetest.Reply{Status: 451}, exchangetest.Reply{Status: 418}, exchangetest.Reply{Status: 500}
	for name, c := range map[string]struct {
		replies map[string]exchangetest.Reply
		asked   string
		kind    market.Kind
		closes  int // observations that close a gate
	}{
		"at once":                  {nil, "a", market.KindNone, 0},
		"cannot be reached":        {map[string]exchangetest.Reply{"a": dial}, "ab", market.KindNone, 0},
		"does not serve our place": {map[string]exchangetest.Reply{"a": geo, "b": dial}, "abc", market.KindNone, 0},
		"none can be reached":      {map[string]exchangetest.Reply{"a": dial, "b": dial, "c": dial}, "abc", market.KindUnavailable, 0},
		"none serves our place":    {map[string]exchangetest.Reply{"a": geo, "b": geo, "c": geo}, "abc", market.KindRestricted, 1},
		"breaks off":               {map[string]exchangetest.Reply{"a": reset}, "a", market.KindUnavailable, 0},
		"in trouble":               {map[string]exchangetest.Reply{"a": broken}, "a", market.KindUnavailable, 0},
		"banned":                   {map[string]exchangetest.Reply{"a": ban}, "a", market.KindBanned, 1},
		"banned at the second":     {map[string]exchangetest.Reply{"a": dial, "b": ban}, "ab", market.KindBanned, 1},
		"a body that breaks off":   {map[string]exchangetest.Reply{"a": {Content: exchangetest.BrokenOff("[")}}, "a", market.KindUnavailable, 0},
		"a ban whose text ends early": {
			map[string]exchangetest.Reply{"a": {Status: 418, Content: exchangetest.BrokenOff("{")}}, "a", market.KindBanned, 1,
		},
		"an error whose text ends early": {
			map[string]exchangetest.Reply{"a": {Status: 500, Content: exchangetest.BrokenOff("{")}}, "a", market.KindUnavailable, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSetup(byHost(c.replies))
			err := x.client.Do(t.Context(), x.request(), accept)
			if market.KindOf(err) != c.kind || x.asked() != c.asked {
				t.Errorf("asked %q, %v, want %q, %v", x.asked(), err, c.asked, c.kind)
			}
			closes := 0
			for i, s := range x.Trail() {
				if want := []exchangetest.StepKind{exchangetest.Admitted, exchangetest.Sent, exchangetest.Observed}[i%3]; s.What != want {
					t.Errorf("step %d is %v, want %v", i, s.What, want)
				}
				if s.Observation.Err != nil && s.Observation.Err.Refusal != nil {
					closes++
				}
			}
			if closes != c.closes {
				t.Errorf("%d observations close a gate, want %d", closes, c.closes)
			}
			if e := asErrorOrNil(err); e != nil && (e.Exchange != "x" || e.Op != market.OpOrderBook) {
				t.Errorf("err = %v: it does not say of whom and of what", err)
			}
		})
	}
}

// TestDo_avoidsAHost: a host that could not be reached is asked last for a minute, and first again after it, or once it
// has answered.
func TestDo_avoidsAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := exchangetest.Reply{Err: errors.New("refused"), NoDial: true}
		x := newSetup(byHost(map[string]exchangetest.Reply{"a": dial}))
		ask := func(want string) {
			t.Helper()
			before := len(x.Requests())
			if err := x.client.Do(t.Context(), x.request(), accept); err != nil {
				t.Fatal(err)
			}
			if got := x.asked()[before:]; got != want {
				t.Errorf("asked %q, want %q", got, want)
			}
		}
		ask("ab")
		ask("b")
		time.Sleep(59 * time.Second)
		ask("b")
		time.Sleep(2 * time.Second)
		ask("ab")
		x.Answer(byHost(map[string]exchangetest.Reply{"b": dial, "c": dial}))
		ask("bca")
		ask("a")
		if n := strings.Count(x.log.String(), "host failed, the next one is asked"); n != 4 {
			t.Errorf("%d lines about a host that gave way, want 4:\n%s", n, x.log.String())
		}
	})
}

// TestDo_asksOneHostWhileAllRefuse: once every host has refused our place on earth, a call asks one of them, in turn, until
// one serves us.
func TestDo_asksOneHostWhileAllRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		geo := exchangetest.Reply{Status: http.StatusUnavailableForLegalReasons}
		all := map[string]exchangetest.Reply{"a": geo, "b": geo, "c": geo}
		x := newSetup(byHost(all))
		ask := func(want string, kind market.Kind) {
			t.Helper()
			before := len(x.Requests())
			err := x.client.Do(t.Context(), x.request(), accept)
			if got := x.asked()[before:]; got != want || market.KindOf(err) != kind {
				t.Errorf("asked %q: %v, want %q: %v", got, err, want, kind)
			}
			if e := asErrorOrNil(err); e != nil && e.Refusal == nil {
				t.Errorf("asked %q: the gate stays open", want)
			}
			time.Sleep(20 * time.Second)
		}
		ask("abc", market.KindRestricted)
		for range 2 {
			ask("a", market.KindRestricted)
			ask("b", market.KindRestricted)
			ask("c", market.KindRestricted)
		}
		x.Answer(byHost(map[string]exchangetest.Reply{"a": geo, "c": geo}))
		ask("a", market.KindRestricted)
		ask("b", market.KindNone)
		ask("b", market.KindNone)
		time.Sleep(time.Minute)
		ask("ab", market.KindNone)
	})
}

func TestDo_noHost(t *testing.T) {
	x := newSetup(byHost(nil))
	r := x.request()
	r.Hosts = exchange.NewHosts(nil)
	if e := asError(t, x.client.Do(t.Context(), r, accept)); e.Kind != market.KindInternal || len(x.Trail()) != 0 {
		t.Errorf("got %v after %d steps", e, len(x.Trail()))
	}
}
