package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/stream"
)

// TestStreams_withoutAKeyAreFewOfOneNetwork: who never sends a key from one network shuts out nobody else.
func TestStreams_withoutAKeyAreFewOfOneNetwork(t *testing.T) {
	r := newStreamRig(t, nil, func(c *api.Config) {
		c.MarketNeedsKey, c.TrustedProxies = true, prefixes("127.0.0.0/8")
	})
	refused := false
	for i := range 4 * stream.MaxUnnamedFrom { // on a slow machine the first are closed meanwhile
		_, res, p := r.dial(t, "X-Forwarded-For", fmt.Sprintf("[2001:db8:1:2::%x]:5000", i))
		if res.StatusCode == http.StatusSwitchingProtocols {
			continue
		}
		if refused = true; res.StatusCode != http.StatusServiceUnavailable || p.Code != "overloaded" || i < stream.MaxUnnamedFrom {
			t.Errorf("client %d: %s %+v", i, res.Status, p)
		}
		break
	}
	if !refused {
		t.Fatal("one network may have any number")
	}
	for _, other := range []string{"2001:db8:1:3::1", "203.0.113.7"} {
		if _, res, p := r.dial(t, "X-Forwarded-For", other); res.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s: %s %+v", other, res.Status, p)
		}
	}
}
