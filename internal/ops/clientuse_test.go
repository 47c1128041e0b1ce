package ops_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/ops"
)

// fakeClients lists what it is told, however many are asked for.
type fakeClients struct {
	all   []ops.ClientUse
	asked []int
}

func (f *fakeClients) Top(n int) []ops.ClientUse {
	f.asked = append(f.asked, n)
	return f.all
}

// TestBoard_clients: the ten that did most, in the order that they came in, and an empty list rather than none.
func TestBoard_clients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		var shown struct {
			Clients []ops.ClientUse `json:"clients"`
		}
		if err := json.Unmarshal(r.board.Snapshot(), &shown); err != nil || shown.Clients == nil || len(shown.Clients) != 0 {
			t.Errorf("nobody: %+v, %v", shown.Clients, err)
		}

		r = newRig("b2", nil)
		for i := range 12 {
			r.clients.all = append(r.clients.all, ops.ClientUse{
				Client: fmt.Sprint("desk-", i), Requests: int64(100 - i), Refused: 1, Upstream: int64(200 - i), InFlight: 2, Streams: 3,
			})
		}
		if err := json.Unmarshal(r.board.Snapshot(), &shown); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.clients.all[:10], shown.Clients); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{10}, r.clients.asked); diff != "" {
			t.Errorf("asked for: %s", diff)
		}
	})
}
