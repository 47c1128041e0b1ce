package exchangesim

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ending is what happens to the connection after the bytes of a delivery.
type ending int

const (
	endNormal ending = iota
	endHang          // stay open and silent until the client leaves or the simulator stops
	endReset         // RST
	endClose         // FIN, whatever was announced
)

// delivery is an answer with what goes wrong on the wire.
type delivery struct {
	answer
	sent  int // bytes of the body that are sent; -1: not even the head
	end   ending
	entry *Request
}

// prepare takes a request through faults, limits, credentials and its endpoint. It waits for latency faults only.
func (v *Venue) prepare(ctx context.Context, r *http.Request) delivery {
	now := time.Now()
	c := v.newCall(r, now)
	met := v.faults.pick(c, now)
	req := Request{Time: now, Method: r.Method, Path: c.ep.path, Class: c.ep.class, Symbol: c.symbol, Credential: c.credential}
	if n := len(met); n > 0 && met[n-1].ends() {
		req.Fault = met[n-1].Kind
	}
	if len(req.Symbol) > 64 {
		req.Symbol = req.Symbol[:64]
	}
	_, known := v.pairs[c.symbol]
	d := delivery{entry: v.count.arrived(req, known)}
	late := false
	for _, f := range met {
		if f.Kind == FaultLatency {
			ok := false
			if late, ok = v.delay(ctx, f.Latency); !ok {
				d.sent, d.end = -1, endClose
				return d
			}
		}
		c.fx.add(f)
	}
	c.wall = time.Now()
	c.now = c.wall.Add(c.fx.skew)
	if late {
		_, d.answer = v.dialect.timeout()
		d.sent = len(d.body)
		return v.finish(c, d)
	}
	if len(met) == 0 || !met[len(met)-1].ends() {
		d.answer = v.answer(c)
		d.sent = len(d.body)
		return v.finish(c, d)
	}
	return v.fail(c, d, met[len(met)-1])
}

// delay waits for a latency fault. late is true if the venue's front gave up first; ok is false if the client left.
func (v *Venue) delay(ctx context.Context, latency time.Duration) (late, ok bool) {
	patience, _ := v.dialect.timeout()
	if late = patience > 0 && latency > patience; late {
		latency = patience
	}
	return late, v.wait(ctx, latency)
}

// add notes a fault that changes the answer.
func (fx *effects) add(f Fault) {
	// The others leave the answer as it is or replace it: see fail.
	//exhaustive:ignore
	switch f.Kind {
	case FaultSkew:
		fx.skew += f.Skew
	case FaultOlder:
		fx.age = orInt(f.Age, 2*time.Second)
	case FaultCached:
		fx.age, fx.cached = orInt(f.Age, 2*time.Second), true
	case FaultCrossed:
		fx.crossed = true
	case FaultNegative:
		fx.negative = true
	case FaultZero:
		fx.zero = true
	case FaultOneSided:
		fx.oneSided = true
	case FaultNoLevels:
		fx.emptyBook = true
	case FaultHalted:
		fx.halted = true
	case FaultMaintenance:
		fx.inMaintenance = true
		if f.until.After(fx.maintenanceEnds) {
			fx.maintenanceEnds = f.until
		}
	}
}

// answer is what the healthy venue says.
func (v *Venue) answer(c *call) answer {
	if c.ep == &notThere {
		return v.dialect.notFound(c)
	}
	if c.r.Method != http.MethodGet {
		return v.dialect.wrongMethod(c)
	}
	if c.ep.open != nil {
		return v.upgrade(c)
	}
	if a, ok := v.dialect.admit(c); !ok {
		return a
	}
	if a, ok := v.replay.answer(c); ok {
		return a
	}
	return c.ep.serve(c)
}

// fail applies a fault that ends the request.
func (v *Venue) fail(c *call, d delivery, f Fault) delivery {
	// Only faults for which ends is true come here.
	//exhaustive:ignore
	switch f.Kind {
	case FaultHang:
		d.sent, d.end = -1, endHang
		return d
	case FaultReset:
		d.sent, d.end = -1, endReset
		return d
	case FaultClose:
		d.sent, d.end = -1, endClose
		return d
	case FaultHangBody, FaultResetBody, FaultTruncate, FaultCutJSON:
		d.answer = v.answer(c)
		half := len(d.body) / 2
		// One of the four above.
		//exhaustive:ignore
		switch f.Kind {
		case FaultHangBody:
			d.end = endHang
		case FaultResetBody:
			d.end = endReset
		case FaultTruncate:
			d.end = endClose
		default: // FaultCutJSON
			d.body = d.body[:half]
		}
		d.sent = half
		return v.finish(c, d)
	case FaultStatus:
		d.answer = answer{status: f.Status, body: []byte(f.Body), header: http.Header{}}
		if d.body == nil {
			d.body = []byte{}
		}
		d.header.Set("Content-Type", orText(f.ContentType, "application/json"))
		for k, val := range f.Header {
			d.header.Set(k, val)
		}
		setRetryAfter(d.header, c.now, f)
	case FaultHTML:
		d.answer = pages[f.Page].answer(f.Status)
		setRetryAfter(d.header, c.now, f)
	case FaultWrongJSON:
		d.answer = jsonAnswer(http.StatusOK, map[string]any{"unexpected": []int{1, 2, 3}, "shape": "other"})
	case FaultEmpty:
		d.answer = answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}}
	case FaultUnavailable:
		d.answer = v.dialect.unavailable(c)
		setRetryAfter(d.header, c.now, f)
	case FaultMaintenance:
		if c.ep.status {
			d.answer = v.answer(c)
		} else {
			d.answer = v.dialect.maintenance(c)
			setRetryAfter(d.header, c.now, f)
		}
	case FaultRateLimit:
		d.answer = v.dialect.rateLimited(c, f)
		setRetryAfter(d.header, c.now, f)
	case FaultBan:
		d.answer = v.dialect.banned(c, f)
	case FaultGeoBlock:
		d.answer = v.dialect.geoBlocked(c)
	default: // FaultDeadKey
		d.answer = v.dialect.deadKey(c)
	}
	d.sent = len(d.body)
	return v.finish(c, d)
}

// finish adds headers. Date follows the venue's clock, whatever a cache says of the body's age.
func (v *Venue) finish(c *call, d delivery) delivery {
	if d.header == nil {
		d.header = http.Header{}
	}
	d.header.Set("Date", c.now.UTC().Format(http.TimeFormat))
	if c.fx.cached {
		d.header.Set("Age", strconv.FormatInt(int64(c.fx.age/time.Second), 10))
	}
	v.dialect.decorate(c, d.header)
	return d
}

// setRetryAfter adds Retry-After if the fault has one.
func setRetryAfter(h http.Header, now time.Time, f Fault) {
	if f.RetryAfter <= 0 {
		return
	}
	if f.RetryAfterDate {
		h.Set("Retry-After", now.Add(f.RetryAfter).UTC().Format(http.TimeFormat))
		return
	}
	h.Set("Retry-After", strconv.FormatInt(int64((f.RetryAfter+time.Second-1)/time.Second), 10))
}

// wait lasts d. It is false if the client left or the simulator stopped.
func (v *Venue) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-v.done:
	}
	return false
}

// jsonAnswer encodes a body without a final newline.
func jsonAnswer(status int, body any) answer {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // bodies are built here from strings, numbers and maps
	}
	return answer{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: data}
}
