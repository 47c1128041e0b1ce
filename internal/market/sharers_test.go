package market_test

import (
	"fmt"
	"slices"
	"testing"

	"exchange-gateway/internal/market"
)

func TestSharers(t *testing.T) {
	if s := market.SharersOf(t.Context()); s != nil || s.Names() != nil {
		t.Errorf("without any: %v", s.Names())
	}
	var s market.Sharers
	ctx := market.WithSharers(t.Context(), &s)
	for _, name := range []string{"desk", "", "desk"} {
		s.Add(name)
	}
	before := market.SharersOf(ctx).Names()
	for i := range 20 {
		s.Add(fmt.Sprint(i))
	}
	if want := []string{"desk", ""}; !slices.Equal(before, want) {
		t.Errorf("names %q, want %q", before, want)
	}
	if got := s.Names(); len(got) != 8 {
		t.Errorf("%d names, want the bound", len(got))
	}
}
