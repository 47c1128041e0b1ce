package exchangetest

import (
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// checkDoor: every request passes the door, once, as planned; and none passes a closed one.
func checkDoor(t *testing.T, s Subject, l market.Listing, q question) {
	s.check(t, "every request passes once", l, func(t *testing.T, b *bench) {
		q.good(t, b)
		if q.silentStatus(b) {
			return
		}
		passedOnce(t, b.Trail())
		asPlanned(t, b, q)
		for _, r := range b.Requests() {
			plainGET(t, r)
		}
	})
	s.check(t, "asks again every time", l, func(t *testing.T, b *bench) {
		q.good(t, b)
		q.good(t, b)
		n := 0
		for _, step := range b.Trail() {
			if step.What == Sent {
				n++
			}
		}
		if n < 2 && !q.silentStatus(b) {
			t.Errorf("two questions sent %d requests: an adapter keeps no answers", n)
		}
	})
	s.check(t, "a refusal sends nothing", l, func(t *testing.T, b *bench) {
		refusal := &market.Error{Exchange: b.venue.ID(), Op: q.op, Kind: market.KindRateLimited, RetryAfter: time.Minute}
		b.Refuse(refusal)
		v, err := q.ask(t.Context(), b)
		if n := b.Count(Sent); n != 0 {
			t.Errorf("%d requests passed a closed door", n)
		}
		if b.Count(Refused) == 0 && q.op == market.OpStatus {
			return
		}
		if !errors.Is(err, market.ErrRateLimited) || !nothing(v) {
			t.Errorf("got %v, %v, want the door's refusal", v, err)
		}
		if e, ok := errors.AsType[*market.Error](err); !ok || e.RetryAfter != time.Minute {
			t.Errorf("err = %v: the time to wait is lost", err)
		}
	})
	s.check(t, "a failure is observed", l, func(t *testing.T, b *bench) {
		b.fault(q.op, always(Reply{Status: http.StatusBadGateway, Body: page, Delay: 40 * time.Millisecond}))
		v, err := q.ask(t.Context(), b)
		if b.Count(Sent) == 0 {
			return
		}
		e := q.fails(t, b, v, err, market.KindUnavailable)
		passedOnce(t, b.Trail())
		last := b.Trail()[len(b.Trail())-1].Observation
		if e != nil && (last.Err == nil || last.Err.Kind != e.Kind || last.Elapsed != 40*time.Millisecond) {
			t.Errorf("observed %v after %v, returned %v", last.Err, last.Elapsed, e)
		}
	})
	s.check(t, "the exchange's clock is observed", l, func(t *testing.T, b *bench) {
		at := time.Date(2026, 11, 29, 2, 0, 7, 0, time.UTC)
		b.Answer(func(r *http.Request, c market.Call) Reply {
			p := s.Good(r, c)
			p.Header = p.Header.Clone()
			if p.Header == nil {
				p.Header = make(http.Header)
			}
			p.Header.Set("Date", at.Format(http.TimeFormat))
			return p
		})
		q.good(t, b)
		for _, step := range b.Trail() {
			if step.What == Observed && !step.Observation.ExchangeAt.Equal(at) {
				t.Errorf("observed %v, the answer's Date is %v", step.Observation.ExchangeAt, at)
			}
		}
	})
}

// passedOnce checks the order: admitted, sent, observed, for one call after the other.
func passedOnce(t *testing.T, trail []Step) {
	t.Helper()
	if len(trail) == 0 || len(trail)%3 != 0 {
		t.Fatalf("%d steps at the door: each request is admitted, sent and observed", len(trail))
	}
	for i := 0; i < len(trail); i += 3 {
		a, s, o := trail[i], trail[i+1], trail[i+2]
		if a.What != Admitted || s.What != Sent || o.What != Observed {
			t.Fatalf("request %d: %v, %v, %v", i/3, a.What, s.What, o.What)
		}
		if !reflect.DeepEqual(a.Call, o.Call) {
			t.Errorf("request %d: admitted as %+v, observed as %+v", i/3, a.Call, o.Call)
		}
	}
}

// asPlanned checks that what the requests touch and cost was said beforehand.
func asPlanned(t *testing.T, b *bench, q question) {
	t.Helper()
	plan := q.plan(b)
	capacity := make(map[market.LimitID]int)
	for _, l := range b.venue.Limits() {
		if l.Capacity <= 0 || l.Window <= 0 {
			t.Errorf("limit %+v has no size", l)
		}
		capacity[l.ID] = l.Capacity
	}
	planned := weights(plan)
	asked := 0
	for _, step := range b.Trail() {
		c := step.Call
		if step.What != Admitted {
			continue
		}
		if c.Exchange != b.venue.ID() || c.Op == "" || c.Class == "" || len(c.Scopes) == 0 || len(c.Charges) == 0 {
			t.Errorf("call %+v: exchange, op, class, scopes and charges must all be said", c)
		}
		for limit, w := range weights(c) {
			if w <= 0 || w > capacity[limit] {
				t.Errorf("%s: charges %d of %s, whose capacity is %d", c.Op, w, limit, capacity[limit])
			}
		}
		if c.Op != q.op {
			continue
		}
		asked++
		if c.Circuit() != plan.Circuit() || !reflect.DeepEqual(c.Scopes, plan.Scopes) {
			t.Errorf("call %+v is not what was planned: %+v", c, plan)
		}
		for limit, w := range weights(c) {
			if planned[limit] < w {
				t.Errorf("%s: a request costs %d of %s, planned %d", c.Op, w, limit, planned[limit])
			}
		}
	}
	if asked == 0 {
		t.Errorf("no request was admitted as %s", q.op)
	}
	if plan.Op != q.op || plan.Class != q.op.Class() || plan.Exchange != b.venue.ID() {
		t.Errorf("plan %+v is not of %s", plan, q.op)
	}
}

func weights(c market.Call) map[market.LimitID]int {
	w := make(map[market.LimitID]int)
	for _, charge := range c.Charges {
		w[charge.Limit] += charge.Weight
	}
	return w
}

func plainGET(t *testing.T, r *http.Request) {
	t.Helper()
	switch {
	case r.Method != http.MethodGet:
		t.Errorf("%s %s: only GET is safe to repeat", r.Method, r.URL.Path)
	case r.Body != nil && r.Body != http.NoBody:
		t.Errorf("%s has a body", r.URL.Path)
	case r.URL.Scheme != "https":
		t.Errorf("%s is asked over %q", r.URL.Path, r.URL.Scheme)
	case r.Header.Get("User-Agent") == "":
		t.Errorf("%s has no User-Agent", r.URL.Path)
	case r.Header.Get("Accept-Encoding") != "":
		t.Errorf("%s sets Accept-Encoding: the transport then no longer unpacks", r.URL.Path)
	}
}
