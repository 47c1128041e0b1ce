package api

import (
	"cmp"
	"net/http"
	"strings"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

// access is what a route asks of its caller.
type access uint8

const (
	accessFree     access = iota // anybody: it tells nothing about anybody
	accessPage                   // anybody who may see that the dashboard is there; the page itself has no data
	accessMarket                 // market:read, unless market data is free on this listener
	accessCircuits               // ops:read, unless market data is free on this listener
	accessAccount                // a key; which account it may read is checked when the account is known
	accessOps                    // ops:read by a key or a session, unless the listener is free
)

// The refusals of a key say the same whichever part of it was wrong.
const (
	wrongKey = "This needs a valid key of the gateway, as `Authorization: Bearer gw_...` or `X-API-Key: gw_...`."
	firstKey = " No key exists yet; make one with: gateway key new --scope account:read"
)

// authorize finds the caller's key and checks it against what the route asks for. A key that is sent is checked also
// where none is needed: whoever mistypes one must not find out at the first balance.
func (s *Server) authorize(c *call, r *http.Request, need access) error {
	text, sent := presented(r.Header)
	if sent {
		k, ok := s.cfg.Keys.Check(text)
		if !ok {
			return s.unauthenticated()
		}
		c.key = k
	} else if need == accessOps || need == accessPage {
		c.key, _ = s.cookie(r)
	}
	switch need {
	case accessFree:
		return nil
	case accessPage:
		return local(s.cfg.AdminOnLoopback, r, c.key)
	case accessMarket:
		return s.needs(c, s.cfg.MarketNeedsKey, keys.MarketRead)
	case accessCircuits:
		return cmp.Or(local(s.cfg.PublicOnLoopback, r, c.key), s.needs(c, s.cfg.MarketNeedsKey, keys.OpsRead))
	case accessOps:
		return cmp.Or(local(s.cfg.AdminOnLoopback, r, c.key), s.needs(c, s.cfg.OpsNeedsKey, keys.OpsRead))
	case accessAccount:
	}
	if c.key == nil {
		return s.unauthenticated()
	}
	return nil
}

// local refuses a request without a valid key that comes to a listener on loopback by a foreign name. A web page can make a
// name of its own point to this machine, and then read whatever a browser may ask here (DNS rebinding); it cannot change
// the name that the browser puts into Host. A valid key or session shows that it is no such page: it has neither, and the
// cookie belongs to another name.
func local(onLoopback bool, r *http.Request, k *keys.Key) error {
	if onLoopback && k == nil && !loopbackName(r.Host) {
		return errForeignName
	}
	return nil
}

func (s *Server) needs(c *call, needed bool, scope string) error {
	switch {
	case !needed:
		return nil
	case c.key == nil:
		return s.unauthenticated()
	case !c.key.Scopes.Has(scope):
		return forbidden(scope)
	}
	return nil
}

func (s *Server) unauthenticated() error {
	detail := wrongKey
	if s.cfg.Keys.Len() == 0 {
		detail += firstKey
	}
	return &requestError{code: CodeUnauthenticated, detail: detail}
}

func forbidden(scope string) error {
	return &requestError{code: CodeForbidden, detail: "The key lacks the scope " + scope + "."}
}

func forbiddenAccount(exchange market.ExchangeID) error {
	return &requestError{
		code: CodeForbidden, exchange: exchange,
		detail: "The key lacks the scope account:read for this account of " + string(exchange) + ".",
	}
}

// presented is the one key of a request. Two different ones, or an Authorization of another scheme, are no valid key:
// sent is true and the text is not one.
func presented(h http.Header) (text string, sent bool) {
	auth, apiKey := h["Authorization"], h["X-Api-Key"]
	if len(auth)+len(apiKey) == 0 {
		return "", false
	}
	if len(auth) > 1 || len(apiKey) > 1 {
		return "", true
	}
	if len(auth) == 1 {
		scheme, token, _ := strings.Cut(auth[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", true
		}
		text = strings.TrimLeft(token, " ")
	}
	if len(apiKey) == 1 {
		if text != "" && text != apiKey[0] {
			return "", true
		}
		text = apiKey[0]
	}
	return text, true
}
