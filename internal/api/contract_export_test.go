package api

import "net/http"

// Observe puts f around the handlers of both listeners, "public" and "admin".
func (s *Server) Observe(f func(listener string, h http.Handler) http.Handler) {
	s.public, s.admin = f("public", s.public), f("admin", s.admin)
}

// Params are the query parameters of each route, by its path.
func (s *Server) Params() map[string][]string {
	all := map[string][]string{}
	for _, rows := range [][]endpoint{s.endpoints(), s.streamEndpoints(), s.docsEndpoints()} {
		for _, e := range rows {
			all[e.path] = e.params
		}
	}
	return all
}

// ActionFields are the fields of each action's body, by its path.
func ActionFields() map[string][]string {
	all := map[string][]string{}
	for _, a := range actions() {
		all["/admin/v1/"+string(a.verb)] = a.fields
	}
	return all
}
