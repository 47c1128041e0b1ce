package api

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/market"
)

// access is what a route asks of its caller.
type access uint8

const (
	accessFree     access = iota // anybody: it tells nothing about anybody
	accessPage                   // anybody who may see that the dashboard is there; the page itself has no data
	accessMarket                 // market:read, unless market data is free on this listener
	accessStream                 // the same, but the key may come later, in the first message
	accessCircuits               // ops:read, unless market data is free on this listener
	accessAccount                // a key; which account it may read is checked when the account is known
	accessOps                    // ops:read by a key or a session, unless the listener is free
)

// The refusals of a key say the same whichever part of it was wrong.
const (
	wrongKey = "This needs a valid key of the gateway, as `Authorization: Bearer gw_...` or `X-API-Key: gw_...`."
	firstKey = " No key exists yet; make one with: gateway key new --scope account:read"

	// What a stream says when its first message brought no valid key.
	wrongFirst = "This needs a valid key of the gateway, in the first message, as `{\"op\":\"auth\",\"key\":\"gw_...\"}`, or in a header of the " +
		"handshake, as `Authorization: Bearer gw_...` or `X-API-Key: gw_...`."
)

// authorize finds the caller's key and checks it against what the route asks for. A key that is sent is checked also
// where none is needed: whoever mistypes one must not find out at the first balance.
func (s *Server) authorize(c *call, r *http.Request, need access) error {
	text, sent := c.presented(r.Header)
	if sent {
		k, err := s.identify(text, address(r), c.start)
		if err != nil {
			return err
		}
		if err := s.belongs(c, k); err != nil {
			return err
		}
	} else if need == accessOps || need == accessPage {
		c.key, _, c.cookie = s.cookie(r)
	}
	if c.key == nil && need != accessFree && s.crossSite(c, r) {
		return errCrossSite
	}
	switch need {
	case accessFree:
		return nil
	case accessPage:
		return s.local(s.cfg.AdminOnLoopback, s.opsNeedKey(c), c, r)
	case accessMarket:
		return cmp.Or(s.near(c, r), s.needs(c, s.marketNeedsKey(c), keys.MarketRead))
	case accessStream:
		return cmp.Or(s.near(c, r), s.needs(c, sent && s.marketNeedsKey(c), keys.MarketRead))
	case accessCircuits:
		return cmp.Or(s.local(s.cfg.PublicOnLoopback, s.marketNeedsKey(c), c, r), s.needs(c, s.marketNeedsKey(c), keys.OpsRead))
	case accessOps:
		return cmp.Or(s.local(s.cfg.AdminOnLoopback, s.opsNeedKey(c), c, r), s.needs(c, s.opsNeedKey(c), keys.OpsRead))
	case accessAccount:
	}
	if c.key == nil {
		return cmp.Or(s.direct(c, r), s.unauthenticated())
	}
	return nil
}

// identify checks a key that was sent, in whatever way: in a header, at a login, in the first message of a stream. Who sent
// too many wrong ones from an address is heard again after a while, also with a right one, or trying keys would not be slowed
// down; but a key that was in use there goes on working, so that nobody is locked out by a neighbour. A key that was valid once
// is no guess: a bot that was forgotten may send it for ever, and its neighbours' new keys must work.
func (s *Server) identify(text string, from netip.Addr, now time.Time) (*keys.Key, error) {
	from = network(from)
	s.guesses.follow(s.cfg.Keys.Version())
	wait := s.guesses.slowed(from, now)
	k, ok := s.cfg.Keys.Check(text)
	if !ok {
		if !s.cfg.Keys.Former(text, now) {
			wait = s.guesses.wrong(from, now)
		}
		if wait > 0 {
			return nil, tooManyKeys(wait)
		}
		s.noteExpired(text, now)
		return nil, s.unauthenticated()
	}
	if wait > 0 && !k.UsedFrom(from, now.Add(-knownFor)) {
		return nil, tooManyKeys(wait)
	}
	k.Use(now, from)
	return k, nil
}

func tooManyKeys(wait time.Duration) error {
	return &requestError{code: CodeClientRateLimited, wait: wait, detail: "Too many wrong keys came from this address just now."}
}

// noteExpired tells the log, and nobody else, that a refused key was right once: its holder asks why the bot stands still.
func (s *Server) noteExpired(text string, now time.Time) {
	k, ok := s.cfg.Keys.Expired(text)
	if !ok {
		return
	}
	if omitted, ok := s.access.admit(repeatKey{code: CodeUnauthenticated, warning: true}, now); ok {
		s.log.Warn("key refused, it has expired", slog.String("key_id", k.ID), slog.String("client", k.Client), slog.Int("omitted", omitted))
	}
}

// belongs puts a request on the account of the key's client. On the admin listener nobody has a quota: an operator who comes
// to end a flood must not be kept out by it.
func (s *Server) belongs(c *call, k *keys.Key) error {
	c.key = k
	if !c.public {
		return nil
	}
	c.client = s.clients.Of(k)
	c.verdict = c.client.Request(c.start)
	return limited(c.verdict)
}

func limited(v quota.Verdict) error {
	if v.OK {
		return nil
	}
	return &requestError{
		code: CodeClientRateLimited, wait: v.Wait,
		detail: "The client of this key has used up its quota of " + strconv.Itoa(v.Limit) + " requests a second.",
	}
}

// marketNeedsKey tells whether market data needs a key for a request.
func (s *Server) marketNeedsKey(c *call) bool {
	return s.cfg.MarketNeedsKey || c.proxied && !s.cfg.AllowOpen
}

// opsNeedKey tells the same of what operators see.
func (s *Server) opsNeedKey(c *call) bool { return s.cfg.OpsNeedsKey || c.proxied && !s.cfg.AllowOpen }

// local refuses a request without a valid key that comes by a foreign name to a listener on loopback, or to any listener that
// needs no key. A web page can make a name of its own point to this machine, and then read whatever a browser may ask here (DNS
// rebinding); it cannot change the name that the browser puts into Host. A valid key or session shows that it is no such page:
// it has neither, and the cookie belongs to another name. Beyond loopback and through a proxy any address is good: what a page
// makes point here is a name.
func (s *Server) local(onLoopback, needsKey bool, c *call, r *http.Request) error {
	switch {
	case c.key != nil:
		return nil
	case onLoopback && !c.proxied:
		if forwarded(r.Header) {
			return errForwarded
		}
		if !loopbackName(r.Host) && !s.allowedHost(r.Host) {
			return errForeignName
		}
	case !needsKey && !addressOrLocal(r.Host) && !s.allowedHost(r.Host):
		return errUnknownName
	}
	return nil
}

// near is [local] for market data, which is no matter of names where it needs a key: then a page gets none by any.
func (s *Server) near(c *call, r *http.Request) error {
	if s.marketNeedsKey(c) {
		return s.direct(c, r)
	}
	return s.local(s.cfg.PublicOnLoopback, false, c, r)
}

// direct refuses a request without a valid key that somebody passed on to a listener on loopback: it may come from
// anywhere, and looks as if it came from this machine.
func (s *Server) direct(c *call, r *http.Request) error {
	if s.cfg.PublicOnLoopback && c.key == nil && !c.proxied && forwarded(r.Header) {
		return errForwarded
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

func (s *Server) unauthenticated() error { return s.unnamed(wrongKey) }

func (s *Server) unnamed(detail string) error {
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

// presented is the one key of a request. A bot that speaks to a facade sends it where its exchange looks for one; a text there
// that is no key of ours is the exchange's own, and not looked at.
func (c *call) presented(h http.Header) (text string, sent bool) {
	text, sent = presented(h)
	if c.dialect == nil {
		return text, sent
	}
	for _, own := range h["X-Mbx-Apikey"] {
		if !strings.HasPrefix(own, keyPrefix) {
			continue
		}
		if sent && own != text {
			return "", true
		}
		text, sent = own, true
	}
	return text, sent
}

// keyPrefix is how every key begins.
const keyPrefix = "gw_"

// presented is the one key of a request's headers. Two different ones, or an Authorization of another scheme, are no valid
// key: sent is true and the text is not one.
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
