package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Order is everything that one run of the process does: one of the three.
type Order struct {
	Target  string   // host:port
	Scripts []Script // all at once
	Idle    *Idle
	Load    *Load
}

// Report is what came of it. An idle crowd reports twice: once it stands, and at its end.
type Report struct {
	Outcomes []Outcome
	Crowd    *Crowd
	Load     *LoadResult
	Err      string // the order could not be carried out
}

// Main is the process: an order as JSON on in, reports as JSON on out. An idle crowd stands until in ends.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	d.DisallowUnknownFields()
	var o Order
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("the order: %w", err)
	}
	switch {
	case o.Target == "":
		return errors.New("the order has no target")
	case o.Idle != nil:
		return o.Idle.stand(ctx, o.Target, func() { _, _ = io.Copy(io.Discard, in) }, e)
	case o.Load != nil:
		r := o.Load.run(ctx, o.Target)
		return e.Encode(Report{Load: &r})
	}
	return e.Encode(Report{Outcomes: playAll(ctx, o.Target, o.Scripts)})
}
