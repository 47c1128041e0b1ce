package stream

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// The pairs of the table: faults of one symbol meet the first, or the last, which is subscribed only then.
const (
	met       = "ABC/USDT"
	neighbour = "XYZ/USDT"
	late      = "NEW/USDT"
)

// step is how often their books change.
const step = 500 * time.Millisecond

// faultCase is a fault of one exchange, and what is asked of the gateway.
type faultCase struct {
	name   string
	id     market.ExchangeID
	faults []exchangesim.Fault
	lasts  time.Duration // of the fault; zero for one that meets a single message
	heals  bool          // the gateway need not wait for its end
	flaps  bool          // the book may be live in between, for no longer than a fault may go unnoticed
	late   bool          // it meets a pair that is subscribed only then
	alone  bool          // the neighbour stays live all the time
	books  bool          // no ticker of the pair that is met is subscribed: its messages are those of the book

	stale     time.Duration // within which the book that is met is stale; zero: it never is
	live      time.Duration // within which all is live again after the end, or after it was stale if it heals
	connects  int           // at most, from the fault on
	snapshots int           // at most
	refused   int           // answers of 418 and 429, at most
	restLives bool          // books by REST are live all the time
}

// subject is the book that is met.
func (c *faultCase) subject() topic {
	if c.late {
		return topic{"orderbook", c.id, late, 20}
	}
	return topic{"orderbook", c.id, met, 400}
}

func (c *faultCase) inject(s *stage) {
	for _, f := range c.faults {
		s.inject(c.id, f)
	}
}

// outcome is a row of the table. Stale is counted from the message that was met, or the beginning of what lasts: a message
// that is missing shows with the next, one step later. Live is counted from the end of what lasts; where that is over at
// once, or the gateway need not wait for it, from the moment of being stale.
type outcome struct {
	faultCase
	staleAfter, liveAfter time.Duration
	wasStale              bool
	asked                 asked
	comparisons, reads    int
	streamed              int // of the reads
}

func (o outcome) String() string {
	stale := "never"
	live := "always"
	if o.wasStale {
		stale, live = o.staleAfter.Round(10*time.Millisecond).String(), o.liveAfter.Round(10*time.Millisecond).String()
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d | %d |", o.id, o.name, stale, live, o.asked.connects, o.asked.snapshots)
}

// TestFaults: whatever a stream does, no book is sent as live that is not the exchange's, the status says how it stands, and
// the exchange is asked no more than it takes to come back.
func TestFaults(t *testing.T) {
	var mu sync.Mutex
	var rows []outcome
	cases := faultCases()
	t.Run("all", func(t *testing.T) {
		for _, c := range cases {
			t.Run(string(c.id)+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := c.run(t)
					mu.Lock()
					defer mu.Unlock()
					rows = append(rows, o)
				})
			})
		}
	})
	order := map[string]int{}
	for i, c := range cases {
		order[string(c.id)+c.name] = i
	}
	slices.SortFunc(rows, func(a, b outcome) int { return order[string(a.id)+a.name] - order[string(b.id)+b.name] })
	var table strings.Builder
	table.WriteString("\n| venue | fault | stale after | live again after | connects | snapshots |\n|---|---|---|---|---|---|\n")
	compared, reads, streamed := 0, 0, 0
	for _, o := range rows {
		table.WriteString(o.String() + "\n")
		compared, reads, streamed = compared+o.comparisons, reads+o.reads, streamed+o.streamed
	}
	t.Logf("%s%d messages that were sent as live compared with the truth; %d books by REST, %d of them from the stream", &table, compared, reads, streamed)
}

// run brings about one fault under the eyes of a client.
func (c faultCase) run(t *testing.T) outcome {
	every := step
	if c.late {
		every = 4 * step // it takes long
	}
	s := newStage(t, setting{only: []market.ExchangeID{c.id}, sim: exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{
		string(c.id): {
			instrument(c.id, met, 450, every), // more than the widest window has
			instrument(c.id, neighbour, 40, every),
			instrument(c.id, late, 40, every),
		},
	}}})
	cl := s.connect()
	cl.subscribe(
		topic{"orderbook", c.id, met, 400}, topic{"orderbook", c.id, met, 50}, topic{"orderbook", c.id, met, 1},
		topic{"orderbook", c.id, neighbour, 20}, topic{"ticker", c.id, neighbour, 0},
	)
	if !c.books {
		cl.subscribe(topic{"ticker", c.id, met, 0})
	}
	ev := s.listen(topic{"orderbook", c.id, met, 100})
	c.settle(t, cl, time.Now().Add(30*time.Second))
	o := outcome{faultCase: c}
	callers, leave := s.callers(&o)
	time.Sleep(5 * time.Second)

	began := time.Now()
	c.inject(s)
	if c.late {
		cl.subscribe(c.subject())
	}
	if c.lasts == 0 {
		began = c.hit(t, s, began)
	}
	time.Sleep(max(c.lasts, c.stale) + 2*step) // what is missing last shows with the message that follows
	c.settle(t, cl, began.Add(c.lasts+c.stale+c.live))
	time.Sleep(10 * time.Second) // it stays so
	leave()
	callers.Wait()
	o.asked = s.taps[c.id].since(began)
	c.judge(t, cl, &o, began)
	for at, n := range ev.comparisons() {
		if o.comparisons += n; n < 5 || !ev.live() {
			t.Errorf("events of %+v: %d comparisons, %s", at, n, ev.status(at))
		}
	}
	cl.close()
	ev.close()
	s.stop()
	return o
}

// hit waits until a fault has met a message, and tells when that was: messages come at steps.
func (c *faultCase) hit(t *testing.T, s *stage, since time.Time) time.Time {
	t.Helper()
	for time.Since(since) < 5*time.Second {
		if s.venue(c.id).Stats().ByFault[string(c.faults[0].Kind)] > 0 {
			if at := time.Now().Truncate(step); at.After(since) {
				return at
			}
			return since // one that was over when it was injected
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the fault met nothing")
	return since
}

// settle waits until all is live.
func (c *faultCase) settle(t *testing.T, cl *client, until time.Time) {
	t.Helper()
	for !cl.live() {
		if time.Now().After(until) {
			t.Errorf("not live in time: %v", cl.states())
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// callers read the book that is met by REST once a second until leave is called, and check what they get.
func (s *stage) callers(o *outcome) (wait *sync.WaitGroup, leave func()) {
	x, end := newTruths(s.venue(o.id)), make(chan struct{})
	wait = new(sync.WaitGroup)
	wait.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			a, err := s.read(o.id, met, 50)
			if err == nil {
				err = a.check(x, 50)
			}
			o.reads++
			if err == nil && a.Freshness.Source == "stream" {
				if o.streamed++; a.Stale {
					err = fmt.Errorf("stale from the stream")
				}
			}
			if err == nil && o.restLives && (a.status != 200 || a.Stale) {
				err = fmt.Errorf("status %d %s, %+v", a.status, a.Code, a.Freshness)
			}
			if err != nil {
				s.t.Errorf("a book by REST at %v: %v", time.Now(), err)
			}
		}
	})
	return wait, sync.OnceFunc(func() { close(end) })
}

// judge compares what came of it with what is asked.
func (c *faultCase) judge(t *testing.T, cl *client, o *outcome, began time.Time) {
	t.Helper()
	told := cl.history(c.subject(), began)
	end := began.Add(c.lasts)
	for i, ch := range told {
		switch {
		case ch.status == "stale" && !o.wasStale:
			o.wasStale, o.staleAfter = true, ch.at.Sub(began)
			if c.heals || c.lasts == 0 {
				end = ch.at
			}
		case ch.status == "live" && ch.at.Before(end) && !c.heals:
			until := end
			if i+1 < len(told) && told[i+1].at.Before(end) {
				until = told[i+1].at
			}
			if !c.flaps || until.Sub(ch.at) > max(c.stale, 2*time.Second) {
				t.Errorf("live while it lasts, until %v: %v", until.Sub(began), since(told, began))
			}
		}
	}
	switch {
	case c.stale == 0 && o.wasStale:
		t.Errorf("stale: %v", since(told, began))
	case c.stale > 0 && (!o.wasStale || o.staleAfter > c.stale):
		t.Errorf("stale after %v (%v), want within %v: %v", o.staleAfter, o.wasStale, c.stale, since(told, began))
	}
	for _, of := range cl.all() {
		beside := cl.history(of, began)
		for _, ch := range beside {
			if ch.status == "live" {
				o.liveAfter = max(o.liveAfter, ch.at.Sub(end))
			}
		}
		if of.pair == neighbour && c.alone && len(beside) > 0 {
			t.Errorf("the neighbour: %v", since(beside, began))
		}
	}
	if o.liveAfter > c.live {
		t.Errorf("live after %v, want within %v: %v", o.liveAfter, c.live, since(told, began))
	}
	if a := o.asked; a.connects > c.connects || a.snapshots > c.snapshots || a.refused > c.refused {
		t.Errorf("asked %+v, want at most %d connects, %d snapshots, %d refusals", a, c.connects, c.snapshots, c.refused)
	}
	for at, n := range cl.comparisons() {
		if o.comparisons += n; n < 5 {
			t.Errorf("%+v: %d comparisons", at, n)
		}
	}
	if o.streamed < 5 {
		t.Errorf("%d of %d books by REST were from the stream", o.streamed, o.reads)
	}
}

// since tells changes by how long after a moment they were.
func since(told []change, began time.Time) (out []string) {
	for _, ch := range told {
		out = append(out, fmt.Sprintf("%v %s %s", ch.at.Sub(began).Round(time.Millisecond), ch.status, ch.reason))
	}
	return out
}
