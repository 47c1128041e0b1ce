package relay_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"strings"

	"exchange-gateway/internal/market"
)

// acceptOf answers the key of a handshake: RFC 6455 section 4.2.2.
func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

const (
	held    = 1000 // levels a side; OKX sends no more than 400
	changed = 10   // levels a side of a change, so 20 in all
)

// entry is one level: tick counts from the best price outwards, in steps of 0.01.
type entry struct {
	bid  bool
	tick int
	size int // in units of 10^-8; 0 removes the level
}

func (e entry) price() string {
	cents := 6_407_310 + e.tick
	if e.bid {
		cents = 6_407_300 - e.tick
	}
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}

func (e entry) amount() string { return fmt.Sprintf("%d.%08d", e.size/1e8, e.size%1e8) }

// whole is a book of n levels a side; every second price is empty.
func whole(n int) (all []entry) {
	for _, bid := range []bool{true, false} {
		for i := range n {
			all = append(all, entry{bid, 2 * i, 58_849_577 + 7919*i})
		}
	}
	return all
}

// diff is one of two changes that follow each other again and again: of ten levels a side eight get another size, one comes
// between two others and one goes. All lie among the best 100.
func diff(which int) (all []entry) {
	for _, bid := range []bool{true, false} {
		for i := range changed - 2 {
			all = append(all, entry{bid, 2 * i * i, 31_250_000 + 977*i + which})
		}
		come, gone := entry{bid, 31 + 20*which, 90_025_000}, entry{bid, 51 - 20*which, 0}
		all = append(all, come, gone)
	}
	return all
}

func side(all []entry, bid bool, form string) string {
	var out []string
	for _, e := range all {
		if e.bid == bid {
			out = append(out, fmt.Sprintf(form, e.price(), e.amount()))
		}
	}
	return strings.Join(out, ",")
}

func listing(exchange market.ExchangeID, quote, symbol string) market.Listing {
	return market.Listing{Exchange: exchange, Pair: market.Pair{Base: "BTC", Quote: quote}, Symbol: symbol}
}

// binanceDialect has the snapshot by REST, and prices and sizes with eight decimals.
func binanceDialect() *dialect {
	d := &dialect{listing: listing("binance", "USDT", "BTCUSDT"), asks: 1, first: 90_210_000_000}
	for i := range d.changes {
		all := diff(i)
		d.changes[i] = text{
			parts: []string{
				`{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1764464400123,"s":"BTCUSDT","U":`, `,"u":`,
				`,"b":[` + side(all, true, `["%s000000","%s"]`) + `],"a":[` + side(all, false, `["%s000000","%s"]`) + `]}}`,
			},
			offsets: []int64{0, 0},
		}
	}
	for _, e := range whole(held) {
		price, err := market.ParseNumber(e.price())
		if err != nil {
			panic(err) // it was just written
		}
		d.rest = append(d.rest, market.Level{Price: price, Size: market.NewNumber(int64(e.size), -8)})
	}
	return d
}

// okxDialect has four texts a level.
func okxDialect() *dialect {
	message := func(action string, all []entry) []string {
		return []string{
			`{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"` + action + `","data":[{"asks":[` + side(all, false, `["%s","%s","0","3"]`) +
				`],"bids":[` + side(all, true, `["%s","%s","0","3"]`) + `],"ts":"1764464400123","checksum":0,"seqId":`, `,"prevSeqId":`, `}]}`,
		}
	}
	d := &dialect{listing: listing("okx", "USDT", "BTC-USDT"), asks: 1, first: 79_706_765_242}
	begin := message("snapshot", whole(400))
	d.snapshot = text{parts: []string{begin[0], begin[1] + "-1" + begin[2]}, offsets: []int64{0}}
	for i := range d.changes {
		d.changes[i] = text{parts: message("update", diff(i)), offsets: []int64{0, -1}}
	}
	return d
}

// coinbaseDialect has an object for each level, and one sequence for the whole connection.
func coinbaseDialect() *dialect {
	message := func(kind string, all []entry) text {
		var updates []string
		for _, e := range all {
			name := map[bool]string{true: "bid", false: "offer"}[e.bid]
			updates = append(updates, fmt.Sprintf(`{"side":%q,"event_time":"2026-11-30T01:00:00.123456Z","price_level":%q,"new_quantity":%q}`,
				name, e.price(), e.amount()))
		}
		return text{
			parts: []string{
				`{"channel":"l2_data","client_id":"","timestamp":"2026-11-30T01:00:00.125Z","sequence_num":`,
				`,"events":[{"type":"` + kind + `","product_id":"BTC-USD","updates":[` + strings.Join(updates, ",") + `]}]}`,
			},
			offsets: []int64{0},
		}
	}
	return &dialect{
		listing: listing("coinbase", "USD", "BTC-USD"), asks: 2, snapshot: message("snapshot", whole(held)),
		changes: [2]text{message("update", diff(0)), message("update", diff(1))},
	}
}
