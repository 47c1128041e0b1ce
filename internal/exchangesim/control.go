package exchangesim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxControlBody bounds the bodies that the control endpoint reads.
const maxControlBody = 1 << 20

// ControlHelp is the list of routes that the control endpoint answers with at its root.
const ControlHelp = `GET    /                        this list
GET    /v1/venues               venues with their symbols
GET    /v1/stats                dials, requests, streams and counts by path, class, credential, symbol, status and fault
GET    /v1/stats/{venue}        the same for one venue; ?log=1 adds the last requests with their times
POST   /v1/stats/reset          set all counts to zero
GET    /v1/faults               active faults with their ids
POST   /v1/faults/{venue}       add one: {"kind":"hang","class":"market_data","for":"30s"}
DELETE /v1/faults               remove all
DELETE /v1/faults/{venue}       remove those of one venue
DELETE /v1/faults/{venue}/{id}  remove one
POST   /v1/schedule             start a schedule: {"steps":[{"after":"10s","venue":"okx","for":"30s","fault":{"kind":"maintenance"}}],"every":"2m"}
DELETE /v1/schedule             stop all schedules and remove their faults
GET    /v1/book/{venue}         the true book: ?symbol=&depth=&at=&seq=
GET    /v1/relays               relays with state, dials and open connections
POST   /v1/relays/{venue}       {"action":"drop"}, or hang, heal, reset

fault kinds that end a request: status hang hang_body reset reset_body close truncate cut_json html wrong_json empty
  unavailable maintenance rate_limit ban geo_block dead_key
fault kinds that change an answer: latency skew older cached crossed negative zero one_sided no_levels halted
fault kinds of streams: messages: gap duplicate reorder malformed crossed, subscriptions: refuse_subscription
  whole connections: silent freeze half_open storm cut (with latency), OKX's sequences: reset_sequence lost_reset
  cached says its age with every answer, balances too; older says nothing, and leaves balances and times as they are
where: path (prefix), class (market_data, reference, account, stream), symbol, credential; how often: count, for, percent with seed
with: status, body, content_type, header, page, latency, skew, age, retry_after, retry_after_date
`

// controlError is a mistake of the caller's.
type controlError struct {
	status int
	err    error
}

func (e *controlError) Error() string { return e.err.Error() }

func badRequest(err error) error { return &controlError{http.StatusBadRequest, err} }

func noSuch(what, name string) error {
	return &controlError{http.StatusNotFound, fmt.Errorf("no %s %q", what, name)}
}

// Control is the handler of the control endpoint. See the package documentation. It has no authentication: bind it to the loopback.
func (s *Sim) Control() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := f(r)
			status := http.StatusOK
			if err != nil {
				status, body = http.StatusInternalServerError, map[string]string{"error": err.Error()}
				if c, ok := errors.AsType[*controlError](err); ok {
					status = c.status
				}
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body) // the client left, or all is well
		})
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, ControlHelp) // the client left, or all is well
	})
	handle("GET /v1/venues", s.getVenues)
	handle("GET /v1/stats", s.getStats)
	handle("GET /v1/stats/{venue}", s.getVenueStats)
	handle("POST /v1/stats/reset", s.resetStats)
	handle("GET /v1/faults", s.getFaults)
	handle("POST /v1/faults/{venue}", s.postFault)
	handle("DELETE /v1/faults", s.deleteFaults)
	handle("DELETE /v1/faults/{venue}", s.deleteVenueFaults)
	handle("DELETE /v1/faults/{venue}/{id}", s.deleteFault)
	handle("POST /v1/schedule", s.postSchedule)
	handle("DELETE /v1/schedule", s.deleteSchedule)
	handle("GET /v1/book/{venue}", s.getBook)
	handle("GET /v1/relays", s.getRelays)
	handle("POST /v1/relays/{venue}", s.postRelay)
	return mux
}

// readBody decodes a bounded JSON body.
func readBody(r *http.Request, into any) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxControlBody+1))
	if err != nil {
		return badRequest(err)
	}
	if len(data) > maxControlBody {
		return badRequest(fmt.Errorf("the body is larger than %d bytes", maxControlBody))
	}
	if err := decodeStrict(data, into); err != nil {
		return badRequest(err)
	}
	return nil
}

func (s *Sim) venueOf(r *http.Request) (*Venue, error) {
	v := s.Venue(r.PathValue("venue"))
	if v == nil {
		return nil, noSuch("venue", r.PathValue("venue"))
	}
	return v, nil
}

// done is the answer of commands that have nothing to say.
func done() (any, error) { return map[string]bool{"ok": true}, nil }

func (s *Sim) getVenues(*http.Request) (any, error) {
	out := map[string][]string{}
	for _, v := range s.venues {
		out[v.id] = v.Symbols()
	}
	return out, nil
}

func (s *Sim) getStats(*http.Request) (any, error) {
	out := map[string]Stats{}
	for _, v := range s.venues {
		st := v.Stats()
		st.Log = nil
		out[v.id] = st
	}
	return out, nil
}

func (s *Sim) getVenueStats(r *http.Request) (any, error) {
	v, err := s.venueOf(r)
	if err != nil {
		return nil, err
	}
	st := v.Stats()
	if r.URL.Query().Get("log") != "1" {
		st.Log = nil
	}
	return st, nil
}

func (s *Sim) resetStats(*http.Request) (any, error) {
	for _, v := range s.venues {
		v.ResetStats()
	}
	return done()
}

func (s *Sim) getFaults(*http.Request) (any, error) {
	out := map[string][]ActiveFault{}
	for _, v := range s.venues {
		out[v.id] = v.Faults()
	}
	return out, nil
}

func (s *Sim) postFault(r *http.Request) (any, error) {
	v, err := s.venueOf(r)
	if err != nil {
		return nil, err
	}
	var f Fault
	if err := readBody(r, &f); err != nil {
		return nil, err
	}
	id, err := v.Inject(f)
	if err != nil {
		return nil, badRequest(err)
	}
	return map[string]int64{"id": id}, nil
}

func (s *Sim) deleteFaults(*http.Request) (any, error) {
	for _, v := range s.venues {
		v.ClearFaults()
	}
	return done()
}

func (s *Sim) deleteVenueFaults(r *http.Request) (any, error) {
	v, err := s.venueOf(r)
	if err != nil {
		return nil, err
	}
	v.ClearFaults()
	return done()
}

func (s *Sim) deleteFault(r *http.Request) (any, error) {
	v, err := s.venueOf(r)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || !v.Remove(id) {
		return nil, noSuch("fault", r.PathValue("id"))
	}
	return done()
}

func (s *Sim) postSchedule(r *http.Request) (any, error) {
	var sc Schedule
	if err := readBody(r, &sc); err != nil {
		return nil, err
	}
	if err := s.StartSchedule(sc); err != nil {
		return nil, badRequest(err)
	}
	return done()
}

func (s *Sim) deleteSchedule(*http.Request) (any, error) {
	s.StopSchedules()
	return done()
}

func (s *Sim) getBook(r *http.Request) (any, error) {
	v, err := s.venueOf(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	depth := 100
	if text := q.Get("depth"); text != "" {
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 || depth > 5000 {
			return nil, badRequest(fmt.Errorf("depth must be 1 to 5000"))
		}
	}
	var b Book
	if text := q.Get("seq"); text != "" {
		seq, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, badRequest(err)
		}
		b, err = v.BookBySeq(q.Get("symbol"), seq, depth)
		if err != nil {
			return nil, &controlError{http.StatusNotFound, err}
		}
		return b, nil
	}
	at := time.Now()
	if text := q.Get("at"); text != "" {
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, badRequest(err)
		}
	}
	if b, err = v.Book(q.Get("symbol"), at, depth); err != nil {
		return nil, &controlError{http.StatusNotFound, err}
	}
	return b, nil
}

func (s *Sim) getRelays(*http.Request) (any, error) {
	out := map[string]RelayStats{}
	for _, v := range s.venues {
		if r := s.Relay(v.id); r != nil {
			out[v.id] = r.Stats()
		}
	}
	return out, nil
}

func (s *Sim) postRelay(r *http.Request) (any, error) {
	v, err := s.venueOf(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Action string `json:"action"`
	}
	if err := readBody(r, &body); err != nil {
		return nil, err
	}
	if err := s.actOnRelay(v.id, body.Action); err != nil {
		return nil, badRequest(err)
	}
	return done()
}
