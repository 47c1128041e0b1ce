package api

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/ops"
)

// sessionCookie is swapped for an ops key by a browser. Cookies know no ports, so it reaches the public listener of the
// same host too, which does not read it.
const sessionCookie = "gateway_ops"

// localActor stands before the name that somebody typed, where no key says who acts.
const localActor = "local:"

// maxTyped is how long a typed name may be, in characters.
const maxTyped = ops.MaxActor - len(localActor)

// standing is who asks and what it may do on the admin listener.
type standing struct {
	key   *keys.Key // nil without one
	ends  time.Time // of the session, zero without one
	local bool      // it may act without a key, under a name that it types
	err   error     // why it may not act, nil if it may
}

// standing finds who asks. The error is a key that is sent and not valid, or nobody who asks by a foreign name; a cookie that
// is not valid is as good as none, for browsers send it unasked.
func (s *Server) standing(c *call, r *http.Request) (standing, error) {
	text, sent := presented(r.Header)
	if !sent {
		k, ends, _ := s.cookie(r)
		c.key = k
		return s.standingOf(c, k, ends), s.local(s.cfg.AdminOnLoopback, s.opsNeedKey(c), c, r)
	}
	k, err := s.identify(text, address(r), c.start)
	if err != nil {
		return standing{}, err
	}
	c.key = k
	return s.standingOf(c, k, time.Time{}), nil
}

// cookie is the key of the session that a browser has, nil without one, and the text that stands for it.
func (s *Server) cookie(r *http.Request) (k *keys.Key, ends time.Time, value string) {
	now := clock.Now()
	for _, c := range r.CookiesNamed(sessionCookie) { // at most as many as fit into the header
		if k, ends, ok := s.sessions.Check(c.Value, now); ok {
			k.Use(now, network(address(r))) // the session stands for it
			return k, ends, c.Value
		}
	}
	return nil, time.Time{}, ""
}

// standingOf tells whether an operator may act. Where there is a key that may, one is needed. Where there is none, whoever
// works on this machine may: somebody at 2 a.m. must not have to make a key first. [local] has kept out web pages by then.
func (s *Server) standingOf(c *call, k *keys.Key, ends time.Time) standing {
	st := standing{key: k, ends: ends}
	switch {
	case k != nil && !k.Scopes.Has(keys.OpsWrite):
		st.err = forbidden(keys.OpsWrite)
	case k != nil:
	case s.cfg.Keys.Any(keys.OpsWrite):
		if st.err = errActorUnknown; !s.cfg.Keys.Holds(keys.OpsWrite) {
			st.err = s.noKeyLeft()
		}
	case !s.cfg.AdminOnLoopback, c.proxied:
		st.err = errNotLocal
	default:
		st.local = true
	}
	return st
}

var (
	errActorUnknown = &requestError{code: CodeUnauthenticated, detail: "Actions need a key with the scope ops:write: log in with it, or send it as `Authorization: Bearer gw_...`."}
	errNotLocal     = &requestError{code: CodeForbidden, detail: "No key may act yet, and without one only the machine itself may, through a listener on loopback. Make one with: gateway key new --scope ops:write"}
	errForeignName  = &requestError{code: CodeForbidden, detail: "Without a valid key this is answered only to who asks by a name of this machine: localhost or 127.0.0.1. A web page can make a name of its own point here."}
	errUnknownName  = &requestError{code: CodeForbidden, detail: "Without a valid key this is answered only to who asks by an address, by localhost, or by a name in allowed_hosts. A web page can make a name of its own point here."}
	errCrossSite    = &requestError{code: CodeForbidden, detail: "A web page of another site asks, without a key. Name its origin in cors_origins if it may read; programs send no Sec-Fetch-Site."}
	errForwarded    = &requestError{code: CodeForbidden, detail: "The request was passed on by something in front of the gateway, which makes the whole network look like this machine. Set trusted_proxies to its address, make keys (gateway key new), and send one."}
	errForeignPage  = &requestError{code: CodeForbidden, detail: "The request comes from a web page of another origin. It is no matter of the key; programs send no Origin."}
)

// noKeyLeft tells why a key is needed to act though there is none that could, and the way out of each.
func (s *Server) noKeyLeft() error {
	switch {
	case !s.cfg.Keys.Readable():
		return errKeysUnread
	case s.cfg.Keys.Lapsed(keys.OpsWrite):
		return errKeysLapsed
	}
	return errKeysGone
}

// Each begins like errActorUnknown: what is asked for is the same.
var (
	errKeysUnread = &requestError{code: CodeUnauthenticated, detail: "Actions need a key with the scope ops:write, and the keys file cannot be read, so none is known. The gateway's log says why, and so does `gateway key list`; it is tried again every 2 s."}
	errKeysLapsed = &requestError{code: CodeUnauthenticated, detail: "Actions need a key with the scope ops:write, and each one in the keys file has expired. Make a new one with: gateway key new --scope ops:write. If there is to be none, take the expired ones out (gateway key list, gateway key revoke ID) and restart the gateway."}
	errKeysGone   = &requestError{code: CodeUnauthenticated, detail: "Actions need a key with the scope ops:write, and the last one was taken out of the keys file while the gateway ran. Make a new one with: gateway key new --scope ops:write. If there is to be none, restart the gateway."}
)

// actor is the name under which an action is written down. A name that is typed beside a key is not read: the key says who.
func (st *standing) actor(f form) (string, error) {
	if st.local {
		if strings.TrimSpace(f["actor"]) == "" {
			return "", invalid("actor", "is required while no ops key exists: your name (--as NAME on the command line)", nil)
		}
		name, err := f.words("actor", "your name", maxTyped)
		return localActor + name, err
	}
	return keyActor(st.key), nil
}

// keyActor is the name of a key: its note, else its id. A note may be longer than a name.
func keyActor(k *keys.Key) string {
	name := strings.TrimSpace(k.Note)
	if utf8.RuneCountInString(name) > ops.MaxActor {
		name = string([]rune(name)[:ops.MaxActor-1]) + "…"
	}
	if name == "" {
		name = k.ID
	}
	return name
}

// sameOrigin refuses what a web page of another origin made a browser send. Programs say nothing about an origin and pass.
func sameOrigin(r *http.Request) error {
	if new(http.CrossOriginProtection).Check(r) != nil {
		return errForeignPage
	}
	// A browser that says `same-origin` has compared the two itself, and the check above believes it. Nothing is lost by
	// comparing again, as streams do.
	if stream.Foreign(r) {
		return errForeignPage
	}
	return nil
}
