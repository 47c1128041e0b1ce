package api

import "net/http"

// The refusals of callers without a key beyond what all of them may have at once. They have no quota that one of them could
// have used up: as for any caller of a gateway that is full, somebody else has taken the place.
var (
	errKeyless = &requestError{code: CodeOverloaded, detail: "Callers without a key have as many requests being answered right now as they " +
		"may have together: half of all. A key has a share of its own; make one with: gateway key new --scope market:read"}
	errKeylessStreams = &requestError{code: CodeOverloaded, wait: streamsWait, detail: "Callers without a key have as many streams open as they " +
		"may have together: half of all. A key has a share of its own; make one with: gateway key new --scope market:read"}
)

// keyless puts a request without a key on the account of all who have none. On the admin listener there are no accounts, see
// belongs. What it sends is looked at later: here it counts that it sent something.
func (s *Server) keyless(c *call, r *http.Request) {
	if _, sent := c.presented(r.Header); sent || !c.public {
		return
	}
	c.client = s.clients.Keyless()
	c.verdict = c.client.Request(c.start)
}
