package stream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// deaf takes failures without failing.
type deaf struct {
	testing.TB
	failures []string
}

func (d *deaf) Errorf(format string, args ...any) {
	d.failures = append(d.failures, fmt.Sprintf(format, args...))
}

// TestClient_tellsWhatIsWrong: the client that all other tests rely on notices messages that are not right.
func TestClient_tellsWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, setting{only: []market.ExchangeID{"okx"}, sim: exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{
			"okx": {instrument("okx", met, 40, time.Hour)}, // stands still
		}}})
		of := topic{"orderbook", "okx", met, 5}
		cl := s.connect()
		cl.subscribe(of)
		for !cl.live() {
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		d := &deaf{TB: t}
		cl.mu.Lock()
		defer cl.mu.Unlock()
		cl.t = d
		h := cl.topics[of]
		now := time.Now().UTC().Format(time.RFC3339Nano)
		message := func(kind, status, confirmed string, prev, seq uint64, bids string) string {
			return fmt.Sprintf(`{"type":%q,"channel":"orderbook","exchange":"okx","symbol":%q,"exchange_symbol":%q,"depth":5,"epoch":%q,`+
				`"seq":%d,"prev_seq":%d,"status":%q,"complete":true,"exchange_seq":%d,"confirmed_at":%q,"sent_at":%q,"bids":[%s],"asks":[]}`,
				kind, met, h.symbol, h.epoch, seq, prev, status, *h.seqOf, confirmed, now, bids)
		}
		var price string
		for price = range h.bids {
			break
		}
		f := func(want, text string) {
			t.Helper()
			d.failures, cl.wrong = nil, 0
			cl.take([]byte(text))
			if got := strings.Join(d.failures, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		spelled := h.bids[price] + ".00" // the same number
		if strings.Contains(h.bids[price], ".") {
			spelled = h.bids[price] + "00"
		}
		f("", message("update", "live", now, h.seq, h.seq+1, fmt.Sprintf(`[%q,%q]`, price, spelled)))
		f("does not follow", message("update", "live", now, h.seq+1, h.seq+2, ""))
		f("the exchange had", message("update", "live", now, h.seq, h.seq+1, fmt.Sprintf(`[%q,"77.7"]`, price)))
		f("", message("update", "stale", now, h.seq, h.seq+1, "")) // nobody says that it is right
		f("the exchange had", message("update", "live", now, h.seq, h.seq+1, fmt.Sprintf(`[%q,"0"]`, price)))
		f("confirmed", message("update", "live", time.Now().Add(-76*time.Second).UTC().Format(time.RFC3339Nano), h.seq, h.seq+1, ""))
		f("the reason", message("status", "stale", now, 0, 0, ""))
		f("not asked for", strings.Replace(message("status", "live", now, 0, 0, ""), `"depth":5`, `"depth":50`, 1))
		cl.t = t
	})
}
