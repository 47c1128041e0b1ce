package market_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

func TestError_is(t *testing.T) {
	err := fmt.Errorf("read book: %w", &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindBanned, Err: context.Canceled})
	if !errors.Is(err, market.ErrBanned) {
		t.Error("kinds are not compared")
	}
	if errors.Is(err, market.ErrRateLimited) {
		t.Error("another kind is the same")
	}
	if !errors.Is(err, context.Canceled) {
		t.Error("the cause is not in the chain")
	}
	// An error that says more than its kind is compared by identity alone.
	if errors.Is(err, &market.Error{Exchange: "okx", Kind: market.KindBanned}) {
		t.Error("compared with an error that is no sentinel")
	}
}

func TestError_says(t *testing.T) {
	for want, e := range map[string]market.Error{
		"binance: order_book: unavailable": {Exchange: "binance", Op: market.OpOrderBook, Kind: market.KindUnavailable},
		"okx: balances: auth (HTTP 401) code 50113: the signature was refused": {
			Exchange: "okx", Op: market.OpBalances, Kind: market.KindAuth, Status: 401, Code: "50113", Err: errors.New("the signature was refused"),
		},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for want, errs := range map[market.Kind][]error{
		market.KindNone:     {nil},
		market.KindBanned:   {market.ErrBanned, fmt.Errorf("x: %w", &market.Error{Kind: market.KindBanned, Err: context.Canceled})},
		market.KindCanceled: {context.Canceled, fmt.Errorf("x: %w", context.Canceled)},
		market.KindTimeout:  {context.DeadlineExceeded, fmt.Errorf("x: %w", context.DeadlineExceeded)},
		// What nobody classified is an exchange in trouble.
		market.KindUnavailable: {errors.New("a failure that nobody thought of")},
	} {
		for _, err := range errs {
			if got := market.KindOf(err); got != want {
				t.Errorf("%v: %v, want %v", err, got, want)
			}
		}
	}
}

// TestKinds_table: what each outcome does to a circuit, whether it is tried again, whether an
// old book may stand in, and whether the caller may come back.
func TestKinds_table(t *testing.T) {
	type row struct {
		effect market.Effect
		retry  market.RetryRule
		stale  bool
		local  bool
		back   bool
	}
	const success, failure, ignored = market.EffectSuccess, market.EffectFailure, market.EffectIgnored
	want := map[string]row{
		"invalid":        {success, market.RetryNever, true, false, false},
		"unknown_symbol": {success, market.RetryNever, false, false, false},
		"delisted":       {success, market.RetryNever, false, false, false},
		"auth":           {success, market.RetryNever, true, false, false},
		"clock_skew":     {success, market.RetryResync, true, false, true},
		"restricted":     {ignored, market.RetryNextHost, true, false, false},
		"rate_limited":   {ignored, market.RetryAtGate, true, false, true},
		"banned":         {ignored, market.RetryNever, true, false, true},
		"timeout":        {failure, market.RetryBackoff, true, false, true},
		"unavailable":    {failure, market.RetryBackoff, true, false, true},
		"maintenance":    {failure, market.RetryNever, true, false, true},
		"malformed":      {failure, market.RetryOnce, true, false, true},
		"suspect":        {ignored, market.RetryNever, true, false, true},
		"circuit_open":   {ignored, market.RetryNever, true, true, true},
		"isolated":       {ignored, market.RetryNever, true, true, true},
		"withheld":       {ignored, market.RetryNever, false, true, true},
		"overloaded":     {ignored, market.RetryNever, true, true, true},
		"client_limited": {ignored, market.RetryNever, true, true, true},
		"local_resource": {ignored, market.RetryNever, true, true, true},
		"canceled":       {ignored, market.RetryNever, false, false, false},
		"not_supported":  {ignored, market.RetryNever, true, false, false},
		"internal":       {ignored, market.RetryNever, false, false, false},
	}
	for _, k := range market.Kinds() {
		got := row{k.Effect(), k.Retry(), k.ServesStale(), k.Local(), k.Retryable()}
		if w, ok := want[k.String()]; !ok || got != w {
			t.Errorf("%v: %+v, want %+v", k, got, w)
		}
		delete(want, k.String())
	}
	if len(want) != 0 {
		t.Errorf("kinds that are missing: %v", want)
	}
	if b, err := json.Marshal(market.KindClockSkew); err != nil || string(b) != `"clock_skew"` {
		t.Errorf("encoded as %s, %v", b, err)
	}
	if got := market.Kind(200).String(); got != "internal" {
		t.Errorf("a kind that does not exist is %q", got)
	}
}

func TestOps_haveAClass(t *testing.T) {
	for op, want := range map[market.Op]market.Class{
		market.OpOrderBook: market.ClassMarketData, market.OpBalances: market.ClassAccount, market.OpStatistics: market.ClassReference,
		market.OpListings: market.ClassReference, market.OpStatus: market.ClassReference, market.OpTime: market.ClassReference,
		market.OpStream: market.ClassStream, market.OpNative: market.ClassReference,
	} {
		if op.Class() != want || !slices.Contains(market.Ops(), op) || !slices.Contains(market.Classes(), want) {
			t.Errorf("%s is of class %s, want %s", op, op.Class(), want)
		}
	}
	if len(market.Ops()) != 8 || len(market.Classes()) != 4 || len(market.CircuitStates()) != 3 {
		t.Error("a closed set has grown: the tables that read it need a row")
	}
}

func TestCircuitID_text(t *testing.T) {
	call := market.Call{Exchange: "coinbase", Class: market.ClassAccount, Family: "advanced"}
	if got := call.Circuit().String(); got != "coinbase/account/advanced" {
		t.Error(got)
	}
	if got := (market.CircuitID{Exchange: "okx", Class: market.ClassMarketData}).String(); got != "okx/market_data" {
		t.Error(got)
	}
}

func TestContext_marks(t *testing.T) {
	ctx := t.Context()
	if market.IsProbe(ctx) || market.LaneOf(ctx) != market.LaneInteractive {
		t.Error("a plain context is a probe or in a lane of its own")
	}
	market.Sending(ctx) // nobody asked to be told
	sent := 0
	marked := market.WithOnSend(market.WithProbe(market.WithLane(ctx, market.LanePrefetch)), func() { sent++ })
	market.Sending(marked)
	market.Sending(marked)
	if !market.IsProbe(marked) || market.LaneOf(marked) != market.LanePrefetch || sent != 2 {
		t.Errorf("probe %t, lane %v, told %d times", market.IsProbe(marked), market.LaneOf(marked), sent)
	}
}

func TestOptional(t *testing.T) {
	if n, ok := (market.Optional{}).Get(); ok || !n.IsZero() || !(market.Optional{}).IsZero() {
		t.Error("the zero value is present")
	}
	zero := market.Some(market.MustNumber("0.00"))
	if n, ok := zero.Get(); !ok || n.String() != "0.00" || zero.IsZero() {
		t.Error("zero is not absent")
	}
	for in, want := range map[string]string{`"1.50"`: `"1.50"`, `2`: `"2"`, `null`: `null`, `""`: `null`} {
		o := zero
		if err := json.Unmarshal([]byte(in), &o); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if got, err := json.Marshal(o); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{`"x"`, `{}`, `true`, `" "`} {
		var o market.Optional
		if err := json.Unmarshal([]byte(in), &o); err == nil || !o.IsZero() {
			t.Errorf("%s was read", in)
		}
	}
}

// TestError_unrecognized: an answer that is not the exchange's own is asked for once more at most, and says who gave it.
func TestError_unrecognized(t *testing.T) {
	e := &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindUnavailable, Status: 404, Host: "https://x.example"}
	if !e.Unrecognized() || e.Retry() != market.RetryOnce || e.Error() != "okx: order_book: unavailable (HTTP 404 from https://x.example)" {
		t.Errorf("%v: retry %v", e, e.Retry())
	}
	if u := (&market.Error{Kind: market.KindMalformed, Code: "-9998"}); !u.UnknownCode() || u.Retry() != market.RetryNever {
		t.Errorf("%v: retry %v", u, u.Retry())
	}
	if u := (&market.Error{Kind: market.KindMalformed}); u.UnknownCode() || u.Retry() != market.RetryOnce {
		t.Errorf("%v: retry %v", u, u.Retry())
	}
	e.Host = ""
	if e.Unrecognized() || e.Retry() != market.RetryBackoff {
		t.Errorf("%v: retry %v", e, e.Retry())
	}
}

// TestServesStale: a refusal of our own question serves what is held, one of a caller's words is the caller's.
func TestServesStale(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&market.Error{Kind: market.KindInvalid, OurFault: true}, true},
		{&market.Error{Kind: market.KindInvalid}, false},
		{fmt.Errorf("x: %w", &market.Error{Kind: market.KindInvalid}), false},
		{&market.Error{Kind: market.KindNotSupported}, true},
		{&market.Error{Kind: market.KindUnknownSymbol}, false},
		{&market.Error{Kind: market.KindDelisted}, false},
		{&market.Error{Kind: market.KindWithheld}, false},
		{errors.New("unclassified"), true},
	} {
		if got := market.ServesStale(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// TestError_Wait: an end that an operator can bring forward is no reason to sleep until it; a ban's end is.
func TestError_Wait(t *testing.T) {
	bounds := map[market.Kind]time.Duration{
		market.KindMaintenance: 50 * time.Second, market.KindIsolated: 25 * time.Second, market.KindWithheld: 25 * time.Second,
	}
	for _, k := range market.Kinds() {
		want := 4 * time.Hour
		if bound, ok := bounds[k]; ok {
			want = bound
		}
		if got := (&market.Error{Kind: k, RetryAfter: 4 * time.Hour}).Wait(); got != want {
			t.Errorf("%v: %v, want %v", k, got, want)
		}
		if got := (&market.Error{Kind: k, RetryAfter: 3 * time.Second}).Wait(); got != 3*time.Second {
			t.Errorf("%v: %v", k, got)
		}
	}
}
