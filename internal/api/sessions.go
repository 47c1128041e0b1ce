package api

import (
	"net/http"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/session"
	"exchange-gateway/internal/clock"
)

// serveOperator is what the routes of sessions pass.
func (s *Server) serveOperator(route Route, h func(c *call, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = route
		readAhead(r)
		if !s.operations.enter(false) {
			s.fail(c, r, errOverloaded)
			return
		}
		defer s.operations.leave(false)
		_, err := parseQuery(r.URL.RawQuery, nil)
		if err == nil {
			err = h(c, r)
		}
		if err != nil {
			s.fail(c, r, err)
		}
	}
}

// login answers POST /admin/v1/session: it swaps a key for a cookie. The key is not kept.
func (s *Server) login(c *call, r *http.Request) error {
	if err := sameOrigin(r); err != nil {
		return err
	}
	if _, err := s.standing(c, r); err != nil { // also here a page by a foreign name is refused, before it tries keys
		return err
	}
	f, err := readForm(r, []string{"key"})
	if err != nil {
		return err
	}
	if f["key"] == "" {
		return invalid("key", "is required: an ops key of this gateway, gw_...", nil)
	}
	now := clock.Now()
	k, err := s.identify(f["key"], address(r), now)
	if err != nil {
		return err
	}
	if c.key = k; !k.Scopes.Has(keys.OpsRead) {
		return forbidden(keys.OpsRead)
	}
	value, ends := s.sessions.Open(k, now)
	setCookie(c, r, value, int(session.Lasts/time.Second))
	s.sendStanding(c, s.standingOf(c, k, ends))
	return nil
}

// logout answers POST /admin/v1/session/end. It takes the cookie away, and a copy of it is worth nothing either.
func (s *Server) logout(c *call, r *http.Request) error {
	if err := sameOrigin(r); err != nil {
		return err
	}
	if _, err := s.standing(c, r); err != nil {
		return err
	}
	now := clock.Now()
	for _, cookie := range r.CookiesNamed(sessionCookie) { // at most as many as fit into the header
		s.sessions.End(cookie.Value, now)
	}
	setCookie(c, r, "", -1)
	s.sendStanding(c, s.standingOf(c, nil, time.Time{}))
	return nil
}

// setCookie gives a browser its session. No script can read it, no other site's page makes the browser send it, and it is
// not sent in the clear once it came by TLS.
func setCookie(c *call, r *http.Request, value string, age int) {
	http.SetCookie(c, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(c, r),
	})
}

// me answers GET /admin/v1/me: what its caller may do, so that a page offers no more.
func (s *Server) me(c *call, r *http.Request) error {
	st, err := s.standing(c, r)
	if err != nil {
		return err
	}
	c.key = st.key
	s.sendStanding(c, st)
	return nil
}

func (s *Server) sendStanding(c *call, st standing) {
	d := &c.doc
	d.open('{')
	if st.key != nil {
		d.str("actor", keyActor(st.key))
	} else {
		d.null("actor")
	}
	d.bool("may_read", !s.opsNeedKey(c) || st.key != nil && st.key.Scopes.Has(keys.OpsRead))
	d.bool("may_act", st.err == nil)
	d.bool("needs_name", st.local)
	why := ""
	if e, ok := st.err.(*requestError); ok { // made in standingOf and never wrapped
		why = e.detail
	}
	d.strOrNull("why", why)
	d.time("session_until", st.ends)
	d.close('}')
	c.send(http.StatusOK, jsonType)
}
