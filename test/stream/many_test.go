package stream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// TestMany: a start with 300 pairs, and all connections cut at once, within the exchange's limits. Each of them is as fast
// as what the exchange allows.
func TestMany(t *testing.T) {
	const pairs = 300
	for _, c := range []struct {
		id          market.ExchangeID
		connections int
		most        time.Duration // until all are live: from the start, and from the cut
	}{
		// 300 snapshots of weight 50 are 15,000. The feed has what callers leave of 70 % of 6,000 a minute.
		{"binance", 2, 5 * time.Minute},
		{"okx", 11, time.Minute}, // fewer than 30 books on each, 3 handshakes a second
		{"coinbase", 10, time.Minute},
	} {
		t.Run(string(c.id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var instruments []exchangesim.Instrument
				var warm []string
				for i := range pairs {
					pair := fmt.Sprintf("P%03d/USDT", i)
					warm = append(warm, pair)
					instruments = append(instruments, instrument(c.id, pair, 5, 10*time.Second))
				}
				s := newStage(t, setting{
					only: []market.ExchangeID{c.id},
					sim:  exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{string(c.id): instruments}},
					conf: func(conf *config.Config) {
						e := conf.Exchanges[c.id]
						e.Warm = warm
						conf.Exchanges[c.id] = e
					},
				})
				began := time.Now()
				start := s.allLive(c.id, pairs, c.most)
				time.Sleep(2 * time.Second)
				atStart := s.taps[c.id].since(began)
				if n := len(s.standing(c.id).Connections); n != c.connections {
					t.Errorf("%d connections, want %d", n, c.connections)
				}
				cut := time.Now()
				s.inject(c.id, exchangesim.Fault{Kind: exchangesim.FaultReset, Class: exchangesim.ClassStream, For: time.Millisecond})
				time.Sleep(10 * time.Millisecond)
				if st := s.standing(c.id); st.Books.Live > 0 || st.Books.Stale != pairs {
					t.Errorf("after the cut: %+v", st.Books)
				}
				back := s.allLive(c.id, pairs, c.most)
				time.Sleep(2 * time.Second)
				atCut := s.taps[c.id].since(cut)
				for _, n := range []asked{atStart, atCut} {
					if n.refused > 0 {
						t.Errorf("the exchange refused: %+v", n)
					}
					if n.connects > c.connections || n.snapshots > pairs {
						t.Errorf("asked %+v, want %d connects and at most one snapshot a pair", n, c.connections)
					}
				}
				weight := s.taps[c.id].weight()
				if weight > 6000 {
					t.Errorf("a weight of %d in a minute", weight)
				}
				t.Logf("%s: %d pairs on %d connections live after %v, and %v after a cut; asked %+v and %+v; weight of books in a minute at most %d",
					c.id, pairs, c.connections, start, back, atStart, atCut, weight)
				s.stop()
			})
		})
	}
}

// allLive waits until all pairs are live, and tells how long it took. What the gateway says of its progress has to add up.
func (s *stage) allLive(id market.ExchangeID, pairs int, most time.Duration) time.Duration {
	s.t.Helper()
	began := time.Now()
	told := false
	for {
		st := s.standing(id)
		if st.Books.Live == pairs {
			break
		}
		if n := st.Books.Live + st.Books.Stale + st.Books.Syncing; n != st.WarmUp.Wanted || st.WarmUp.Synced > n || st.WarmUp.Queued > n {
			s.t.Errorf("%+v does not add up", st)
		}
		told = told || st.WarmUp.ETA != nil
		if time.Since(began) > most {
			s.t.Errorf("after %v: %+v", most, st)
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if took := time.Since(began); took > 10*time.Second && !told {
		s.t.Errorf("nothing was told of how long it takes, which was %v", took)
	}
	return time.Since(began)
}

// weight is the most that Binance counted for books in a minute of its clock.
func (p *tap) weight() (most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	minutes := map[int64]int{}
	for _, one := range p.all {
		if !one.book {
			continue
		}
		w := 250
		for _, tier := range []struct{ depth, weight int }{{1000, 50}, {500, 25}, {100, 5}} {
			if one.depth <= tier.depth {
				w = tier.weight
			}
		}
		minutes[one.at.Unix()/60] += w
		most = max(most, minutes[one.at.Unix()/60])
	}
	return most
}
