package exchangesim_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// okxBook keeps a book by the documented procedure.
type okxBook struct {
	ledger
	last int64
}

func (b *okxBook) take(t *testing.T, m okxMessage) bool {
	t.Helper()
	if len(m.Data) != 1 || m.Data[0].Bids == nil || m.Data[0].Asks == nil || m.Data[0].PrevSeqID == nil || m.Data[0].Checksum == nil || *m.Data[0].Checksum != 0 {
		t.Fatalf("not a message of books: %+v", m)
	}
	d := m.Data[0]
	switch m.Action {
	case "snapshot":
		if *d.PrevSeqID != -1 {
			t.Fatalf("prevSeqId of a snapshot: %d", *d.PrevSeqID)
		}
		b.ledger = ledger{map[string]string{}, map[string]string{}}
	case "update":
		if *d.PrevSeqID != b.last {
			return false
		}
	default:
		t.Fatalf("action %q", m.Action)
	}
	apply(b.bids, okxPairs(t, d.Bids))
	apply(b.asks, okxPairs(t, d.Asks))
	b.last = d.SeqID
	return true
}

func okxPairs(t *testing.T, rows [][]string) [][2]string {
	t.Helper()
	out := make([][2]string, len(rows))
	for i, r := range rows {
		if len(r) != 4 || r[2] != "0" {
			t.Fatalf("level %v", r)
		}
		out[i] = [2]string{r[0], r[1]}
	}
	return out
}

func (b *okxBook) check(t *testing.T, v *exchangesim.Venue, m okxMessage) {
	t.Helper()
	bySeq, err := v.BookBySeq(m.Arg.InstID, b.last, 400)
	if err != nil {
		t.Fatal(err)
	}
	byTime, err := v.Book(m.Arg.InstID, okxTime(t, m.Data[0].TS), 400)
	if err != nil {
		t.Fatal(err)
	}
	if !b.equal(ledgerOf(bySeq)) || !b.equal(ledgerOf(byTime)) {
		t.Fatalf("%s: another book than the venue's at sequence %d", m.Arg.InstID, b.last)
	}
}

func okxTime(t *testing.T, ms string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMilli(n)
}

func TestOKXStream_books(t *testing.T) {
	for _, c := range []struct {
		symbol string
		events int
		levels int // a side
	}{{"BTC-USDT", 150, 400}, {"ETH-USDT", 60, 400}, {"LTC-EUR", 3, 9}, {"DUST-ETH", 5, 0}} {
		t.Run(c.symbol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{Seed: 5})
				v := sim.Venue("okx")
				ws := dialStream(t, piped(t, sim, "okx"), okxPublic)
				pinging(t, ws)
				ws.send(subscribeOKX("books", c.symbol))
				var book okxBook
				removed := 0
				for n := range c.events {
					m := wantOKX(t, ws, `"action"`, 2*time.Minute)
					if want := []string{"snapshot", "update"}[min(n, 1)]; m.Action != want || m.Arg.Channel != "books" || m.Arg.InstID != c.symbol {
						t.Fatalf("message %d: %+v", n, m)
					}
					if !book.take(t, m) {
						t.Fatalf("a gap at message %d", n)
					}
					book.check(t, v, m)
					if c.levels > 0 && (len(book.bids) != c.levels || len(book.asks) != c.levels) {
						t.Fatalf("%d bids and %d asks", len(book.bids), len(book.asks))
					}
					for _, r := range m.Data[0].Bids {
						if r[1] == "0" {
							removed++
						}
					}
				}
				if c.symbol == "BTC-USDT" && removed == 0 {
					t.Fatal("no level was ever removed")
				}
			})
		})
	}
}

func TestOKXStream_keepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Seed: 5})
		ws := dialStream(t, piped(t, sim, "okx"), okxPublic)
		pinging(t, ws)
		ws.send(subscribeOKX("books", "HALT-USDT"))
		var book okxBook
		book.take(t, wantOKX(t, ws, `"snapshot"`, time.Second))
		for range 3 {
			began := time.Now()
			m := wantOKX(t, ws, `"update"`, 2*time.Minute)
			if d := m.Data[0]; len(d.Bids)+len(d.Asks) > 0 || d.SeqID != book.last || !book.take(t, m) {
				t.Fatalf("%+v", m)
			}
			if took := time.Since(began); took < 55*time.Second || took > 65*time.Second {
				t.Fatalf("a keep-alive after %v", took)
			}
			book.check(t, sim.Venue("okx"), m)
		}
		if _, err := sim.Venue("okx").Inject(exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: "HALT-USDT"}); err != nil {
			t.Fatal(err)
		}
		ws.send(subscribeOKX("books5", "USDC-USDT"))
		for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
			if m, ok := ws.next(time.Second); !ok || strings.Contains(m, "HALT-USDT") {
				t.Fatalf("got %q, want the other pair alone", m)
			}
		}
	})
}

func TestOKXStream_reset(t *testing.T) {
	for _, kind := range []exchangesim.FaultKind{exchangesim.FaultResetSequence, exchangesim.FaultLostReset} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{Seed: 9})
				v, tr := sim.Venue("okx"), piped(t, sim, "okx")
				ws := dialStream(t, tr, okxPublic)
				ws.send(subscribeOKX("books", "BTC-USDT"))
				var book okxBook
				book.take(t, wantOKX(t, ws, `"snapshot"`, time.Second))
				for range 2 {
					book.take(t, wantOKX(t, ws, `"update"`, time.Second))
					before := book.last
					if _, err := v.Inject(exchangesim.Fault{Kind: kind, Symbol: "BTC-USDT"}); err != nil {
						t.Fatal(err)
					}
					fell, gap := 0, false
					for range 20 {
						m := wantOKX(t, ws, `"update"`, time.Second)
						if gap = !book.take(t, m); gap {
							break
						}
						if d := m.Data[0]; d.SeqID < *d.PrevSeqID {
							fell++
						}
						book.check(t, v, m)
					}
					if kind == exchangesim.FaultLostReset {
						if !gap || fell != 0 {
							t.Fatalf("gap %v, %d resets seen, want a gap alone", gap, fell)
						}
						return
					}
					if gap || fell != 1 || book.last >= before {
						t.Fatalf("gap %v, %d resets, from %d to %d", gap, fell, before, book.last)
					}
					var rest struct {
						Data []okxData `json:"data"`
					}
					client{t: t, http: &http.Client{Transport: tr}, base: "http://www.okx.com"}.get("/api/v5/market/books?sz=400&instId=BTC-USDT").decode(t, &rest)
					if n := rest.Data[0].SeqID; n < book.last || n >= before {
						t.Fatalf("REST has the sequence %d, the stream %d", n, book.last)
					}
				}
			})
		})
	}
}

func TestOKXStream_gap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		v := sim.Venue("okx")
		ws := dialStream(t, piped(t, sim, "okx"), okxPublic)
		ws.send(subscribeOKX("books", "ETH-USDT"))
		var book okxBook
		book.take(t, wantOKX(t, ws, `"snapshot"`, time.Second))
		if _, err := v.Inject(exchangesim.Fault{Kind: exchangesim.FaultGap, Symbol: "ETH-USDT", Count: 1}); err != nil {
			t.Fatal(err)
		}
		for book.take(t, wantOKX(t, ws, `"update"`, time.Second)) {
		}
		ws.send(`{"op":"unsubscribe","args":[{"channel":"books","instId":"ETH-USDT"}]}`)
		ws.want(`"event":"unsubscribe"`, time.Second)
		ws.send(subscribeOKX("books", "ETH-USDT"))
		for m, n := wantOKX(t, ws, `"action"`, time.Second), 0; n < 10; m, n = wantOKX(t, ws, `"action"`, time.Second), n+1 {
			if !book.take(t, m) {
				t.Fatal("a second gap")
			}
			book.check(t, v, m)
		}

		if _, err := v.Inject(exchangesim.Fault{Kind: exchangesim.FaultRefuse, Symbol: "BTC-USDT"}); err != nil {
			t.Fatal(err)
		}
		ws.send(subscribeOKX("books", "BTC-USDT"))
		if m := wantOKX(t, ws, `"error"`, time.Second); m.Code != "60018" || m.ID != "1512" {
			t.Fatalf("refused with %+v", m)
		}
	})
}

func TestOKXStream_tops(t *testing.T) {
	for channel, levels := range map[string]int{"books5": 5, "bbo-tbt": 1} {
		t.Run(channel, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{})
				v := sim.Venue("okx")
				ws := dialStream(t, piped(t, sim, "okx"), okxPublic)
				pinging(t, ws)
				ws.send(subscribeOKX(channel, "BTC-USDT"))
				for range 20 {
					m := wantOKX(t, ws, `"data"`, time.Second)
					d := m.Data[0]
					truth, err := v.BookBySeq("BTC-USDT", d.SeqID, levels)
					if err != nil {
						t.Fatal(err)
					}
					got := ledger{map[string]string{}, map[string]string{}}
					apply(got.bids, okxPairs(t, d.Bids))
					apply(got.asks, okxPairs(t, d.Asks))
					if m.Action != "" || d.Checksum != nil || d.PrevSeqID != nil || (d.InstID != "") != (channel == "books5") || !got.equal(ledgerOf(truth)) {
						t.Fatalf("%+v", m)
					}
				}
				ws.send(`{"op":"unsubscribe","args":[{"channel":"` + channel + `","instId":"BTC-USDT"}]}`)
				ws.want(`"unsubscribe"`, time.Second)
				ws.send(subscribeOKX(channel, "HALT-USDT"))
				first := wantOKX(t, ws, `"data"`, time.Second)
				began := time.Now()
				again := wantOKX(t, ws, `"data"`, 2*time.Minute)
				if took := time.Since(began).Round(time.Second); took != time.Minute || again.Data[0].SeqID != first.Data[0].SeqID {
					t.Fatalf("repeated after %v: %+v", took, again)
				}
			})
		})
	}
}
