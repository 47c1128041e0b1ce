package exchangesim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Schedule is a list of things that go wrong, by time.
type Schedule struct {
	Steps []Step
	Every time.Duration // repeat with this period; 0 runs once
}

// Step is one of them: a fault or an action on a venue's relay.
type Step struct {
	After time.Duration // from the start of the round
	Venue string
	For   time.Duration // undo afterwards; 0 leaves it until the schedule is stopped
	Fault *Fault
	Relay string // drop, hang, heal or reset
}

// maxSteps bounds a schedule.
const maxSteps = 1000

type scheduleJSON struct {
	Steps []stepJSON `json:"steps"`
	Every duration   `json:"every,omitempty"`
}

type stepJSON struct {
	After duration `json:"after,omitempty"`
	Venue string   `json:"venue"`
	For   duration `json:"for,omitempty"`
	Fault *Fault   `json:"fault,omitempty"`
	Relay string   `json:"relay,omitempty"`
}

// UnmarshalJSON reads the form of schedule files and of the control endpoint; unknown fields are refused.
func (s *Schedule) UnmarshalJSON(data []byte) error {
	var w scheduleJSON
	if err := decodeStrict(data, &w); err != nil {
		return err
	}
	s.Every, s.Steps = time.Duration(w.Every), nil
	for _, st := range w.Steps {
		s.Steps = append(s.Steps, Step{time.Duration(st.After), st.Venue, time.Duration(st.For), st.Fault, st.Relay})
	}
	return nil
}

// ReadSchedule reads a schedule file.
func ReadSchedule(path string) (Schedule, error) {
	data, err := readFile(path, 1<<20)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule: %w", err)
	}
	var s Schedule
	if err := s.UnmarshalJSON(data); err != nil {
		return Schedule{}, fmt.Errorf("schedule %s: %w", path, err)
	}
	return s, nil
}

// event is a moment of a round.
type event struct {
	at   time.Duration
	step int
	undo bool
}

// events orders a round and checks it.
func (s *Sim) events(sc Schedule) ([]event, error) {
	if len(sc.Steps) == 0 || len(sc.Steps) > maxSteps {
		return nil, fmt.Errorf("schedule: 1 to %d steps are needed", maxSteps)
	}
	var out []event
	for i, st := range sc.Steps {
		if s.Venue(st.Venue) == nil {
			return nil, fmt.Errorf("schedule: step %d: no venue %q", i+1, st.Venue)
		}
		if st.After < 0 || st.For < 0 {
			return nil, fmt.Errorf("schedule: step %d: after and for must not be negative", i+1)
		}
		if (st.Fault == nil) == (st.Relay == "") {
			return nil, fmt.Errorf("schedule: step %d: either a fault or a relay action is needed", i+1)
		}
		if st.Fault != nil {
			if err := s.Venue(st.Venue).validFor(*st.Fault); err != nil {
				return nil, fmt.Errorf("schedule: step %d: %w", i+1, err)
			}
		} else if err := s.checkRelay(st.Venue, st.Relay); err != nil {
			return nil, fmt.Errorf("schedule: step %d: %w", i+1, err)
		}
		out = append(out, event{at: st.After, step: i})
		if st.For > 0 {
			out = append(out, event{at: st.After + st.For, step: i, undo: true})
		}
	}
	slices.SortStableFunc(out, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	if last := out[len(out)-1].at; sc.Every != 0 && sc.Every < last {
		return nil, fmt.Errorf("schedule: every is shorter than the round, which lasts %v", last)
	}
	return out, nil
}

// Run plays a schedule on the caller's goroutine. It returns when the schedule is over (nil), when ctx ends (its error) or when the Sim
// is closed, and then removes what the schedule had put in force.
func (s *Sim) Run(ctx context.Context, sc Schedule) error {
	events, err := s.events(sc)
	if err != nil {
		return err
	}
	ids := map[int]int64{} // faults in force, by step
	defer func() {
		for i := range sc.Steps {
			s.undo(sc.Steps[i], ids, i)
		}
	}()
	for start := time.Now(); ; start = start.Add(sc.Every) {
		for _, e := range events {
			if err := s.until(ctx, start.Add(e.at)); err != nil {
				return err
			}
			if e.undo {
				s.undo(sc.Steps[e.step], ids, e.step)
			} else if err := s.apply(sc.Steps[e.step], ids, e.step); err != nil {
				return err
			}
		}
		if sc.Every == 0 {
			return s.linger(ctx, sc)
		}
	}
}

// linger keeps steps without an end in force until somebody stops the schedule.
func (s *Sim) linger(ctx context.Context, sc Schedule) error {
	if !slices.ContainsFunc(sc.Steps, func(st Step) bool { return st.For == 0 && st.Relay != "reset" && st.Relay != "heal" }) {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return nil
	}
}

func (s *Sim) until(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return context.Canceled
	}
}

func (s *Sim) apply(st Step, ids map[int]int64, i int) error {
	if st.Fault == nil {
		return s.actOnRelay(st.Venue, st.Relay)
	}
	v := s.Venue(st.Venue)
	if old, ok := ids[i]; ok {
		v.Remove(old) // a step without an end, in the next round
	}
	id, err := v.Inject(*st.Fault)
	if err != nil {
		return err
	}
	ids[i] = id
	return nil
}

func (s *Sim) undo(st Step, ids map[int]int64, i int) {
	if id, ok := ids[i]; ok {
		s.Venue(st.Venue).Remove(id)
		delete(ids, i)
	}
	if r := s.Relay(st.Venue); st.Relay != "" && r != nil {
		r.Set(RelayForward)
	}
}

// Relay gives the relay of a venue; nil if none was started.
func (s *Sim) Relay(venue string) *Relay {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.relays[venue]
}

func (s *Sim) checkRelay(venue, action string) error {
	if s.Relay(venue) == nil {
		return fmt.Errorf("%s has no relay", venue)
	}
	if !slices.Contains([]string{"drop", "hang", "heal", "reset"}, action) {
		return fmt.Errorf("unknown relay action %q: drop, hang, heal or reset", action)
	}
	return nil
}

func (s *Sim) actOnRelay(venue, action string) error {
	if err := s.checkRelay(venue, action); err != nil {
		return err
	}
	r := s.Relay(venue)
	if r == nil {
		return fmt.Errorf("%s has no relay", venue) // closed in between
	}
	switch action {
	case "drop":
		r.Set(RelayDrop)
	case "hang":
		r.Set(RelayHang)
	case "heal":
		r.Set(RelayForward)
	default: // reset
		r.Reset()
	}
	return nil
}

// play is a schedule that runs in the background.
type play struct{ cancel context.CancelFunc }

// maxPlays bounds the schedules in the background.
const maxPlays = 16

// StartSchedule plays a schedule in the background until it is over, StopSchedules or Close.
func (s *Sim) StartSchedule(sc Schedule) error {
	if _, err := s.events(sc); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.plays) >= maxPlays {
		return fmt.Errorf("schedule: the simulator is closed, or %d schedules run already", maxPlays)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &play{cancel: cancel}
	s.plays[p] = struct{}{}
	s.busy.Go(func() {
		defer cancel()
		_ = s.Run(ctx, sc) // checked above; it ends by being stopped
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.plays, p)
	})
	return nil
}

// StopSchedules stops all schedules in the background; their faults end with them.
func (s *Sim) StopSchedules() {
	s.mu.Lock()
	for p := range s.plays {
		p.cancel()
	}
	s.mu.Unlock()
	s.busy.Wait()
}
