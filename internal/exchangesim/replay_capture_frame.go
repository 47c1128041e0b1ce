package exchangesim

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// tapeFrame is one recorded message and what it does to the book. One that is not a message of the book, or that cannot be read, is
// played all the same and does nothing.
type tapeFrame struct {
	at       time.Time
	after    time.Duration // the first frame
	text     []byte        // as it is played; at Binance without an envelope
	product  string        // Coinbase: whose book it is
	snapshot bool
	bids     [][2]string
	asks     [][2]string
	hasSeq   bool
	seq      int64 // of the book afterwards
	prev     int64 // OKX: of the book before
}

// within reports whether a book with a sequence holds the frame already.
func (f tapeFrame) within(seq int64) bool {
	return f.hasSeq && !f.snapshot && (f.seq < seq || f.seq == seq && f.prev < f.seq)
}

func readTapeFrame(venue, symbol string, f CaptureFrame) tapeFrame {
	out := tapeFrame{at: f.At, text: []byte(f.Text)}
	switch venue {
	case "binance":
		out.readBinance()
	case "okx":
		out.readOKX(symbol)
	default:
		out.readCoinbase(symbol)
	}
	return out
}

// readBinance reads a diff, with an envelope or without.
func (f *tapeFrame) readBinance() {
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(f.text, &envelope) == nil && envelope.Data != nil {
		f.text = envelope.Data
	}
	var d struct {
		Event string     `json:"e"`
		Time  int64      `json:"E"` // keys that differ by case only are taken for one another otherwise
		First int64      `json:"U"`
		Last  int64      `json:"u"`
		Bids  [][]string `json:"b"`
		Asks  [][]string `json:"a"`
	}
	if json.Unmarshal(f.text, &d) == nil && d.Event == "depthUpdate" {
		f.seq, f.hasSeq, f.prev, f.bids, f.asks = d.Last, true, d.First-1, firstTwo(d.Bids), firstTwo(d.Asks)
	}
}

// readOKX reads a push of books.
func (f *tapeFrame) readOKX(symbol string) {
	var d struct {
		Arg    okxArg `json:"arg"`
		Action string `json:"action"`
		Data   []struct {
			Bids      [][]string `json:"bids"`
			Asks      [][]string `json:"asks"`
			SeqID     int64      `json:"seqId"`
			PrevSeqID int64      `json:"prevSeqId"`
		} `json:"data"`
	}
	if json.Unmarshal(f.text, &d) != nil || len(d.Data) != 1 || d.Arg.InstID != symbol || d.Action == "" {
		return
	}
	row := d.Data[0]
	f.snapshot = d.Action == "snapshot"
	f.seq, f.hasSeq, f.prev, f.bids, f.asks = row.SeqID, true, row.PrevSeqID, firstTwo(row.Bids), firstTwo(row.Asks)
}

// firstTwo drops what a level says besides price and size.
func firstTwo(rows [][]string) [][2]string {
	out := make([][2]string, 0, len(rows))
	for _, r := range rows {
		if len(r) >= 2 {
			out = append(out, [2]string{r[0], r[1]})
		}
	}
	return out
}

// atTapeEvent is one event of l2_data.
type atTapeEvent struct {
	Type      string `json:"type"`
	ProductID string `json:"product_id"`
	Updates   []struct {
		Side        string `json:"side"`
		PriceLevel  string `json:"price_level"`
		NewQuantity string `json:"new_quantity"`
	} `json:"updates"`
}

// readCoinbase reads the events of one product; events of others in the same message are not played.
func (f *tapeFrame) readCoinbase(symbol string) {
	var d struct {
		Channel string            `json:"channel"`
		Events  []json.RawMessage `json:"events"`
	}
	if json.Unmarshal(f.text, &d) != nil || d.Channel != "l2_data" {
		return
	}
	events := make([]atTapeEvent, len(d.Events))
	for i, raw := range d.Events {
		if json.Unmarshal(raw, &events[i]) != nil {
			return
		}
	}
	f.product = symbol
	if !slices.ContainsFunc(events, func(e atTapeEvent) bool { return e.ProductID == symbol }) && len(events) > 0 {
		f.product = events[0].ProductID // the symbol is another name of it
	}
	kept := d.Events[:0:0]
	for i, e := range events {
		if e.ProductID != f.product {
			continue
		}
		kept = append(kept, d.Events[i])
		if e.Type == "snapshot" {
			f.snapshot, f.bids, f.asks = true, nil, nil
		}
		for _, u := range e.Updates {
			if l := [2]string{u.PriceLevel, u.NewQuantity}; u.Side == "bid" {
				f.bids = append(f.bids, l)
			} else {
				f.asks = append(f.asks, l)
			}
		}
	}
	if len(kept) < len(d.Events) {
		f.text = replaceEvents(f.text, kept)
	}
}

// replaceEvents puts other events into a message of Coinbase's; all other fields stay.
func replaceEvents(text []byte, events []json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return text // it was read before
	}
	fields["events"] = mustJSON(events)
	return mustJSON(fields)
}

// renumber gives a message of Coinbase's the number that is next on its new connection and touches no other byte.
func renumber(text []byte, n int64) []byte {
	const key = `"sequence_num"`
	at := bytes.Index(text, []byte(key))
	if at < 0 {
		return text
	}
	from := at + len(key)
	for from < len(text) && bytes.IndexByte([]byte(" \t\r\n:"), text[from]) >= 0 {
		from++
	}
	to := from
	for to < len(text) && text[to] >= '0' && text[to] <= '9' {
		to++
	}
	return slices.Concat(text[:from], strconv.AppendInt(nil, n, 10), text[to:])
}
