package exchangesim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Capture is a recorded stretch of one book's stream: the book before the first frame, and the frames. Its JSON is what the gateway's
// admin listener gives; fields that are not needed here are ignored.
type Capture struct {
	Exchange string         `json:"exchange"`
	Symbol   string         `json:"symbol"` // the venue's own name
	Pair     string         `json:"pair"`   // BTC/USDT
	TakenAt  time.Time      `json:"taken_at"`
	Base     CaptureBase    `json:"base"`
	Frames   []CaptureFrame `json:"frames"`
}

// CaptureBase is a book. Its sides are empty if the first frame is a snapshot.
type CaptureBase struct {
	Bids         [][2]string `json:"bids"`
	Asks         [][2]string `json:"asks"`
	Sequence     *int64      `json:"sequence"` // null where the venue has none; Binance needs it
	ExchangeTime *time.Time  `json:"exchange_time"`
}

// CaptureFrame is one message as it came.
type CaptureFrame struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// maxCaptureFrames bounds the frames of a capture; the gateway keeps 200.
const maxCaptureFrames = 100_000

// parseCapture reads the JSON of a capture. ok is false if the document is something else.
func parseCapture(data []byte) (c *Capture, ok bool, err error) {
	var probe map[string]json.RawMessage
	if json.Unmarshal(data, &probe) != nil || probe["frames"] == nil {
		return nil, false, nil
	}
	c = &Capture{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, true, err
	}
	return c, true, nil
}

// play lists the pair of a capture at its venue, in the place of one with the same symbol, and makes its book the recorded one.
func (s *Sim) play(c *Capture) error {
	v := s.Venue(c.Exchange)
	if v == nil {
		return fmt.Errorf("capture: no venue %q", c.Exchange)
	}
	base, quote, ok := strings.Cut(c.Pair, "/")
	if !ok || c.Symbol == "" || base == "" || quote == "" {
		return errors.New("capture: exchange, symbol and pair (such as BTC/USDT) are needed")
	}
	if len(c.Frames) > maxCaptureFrames {
		return fmt.Errorf("capture: %d frames, of %d at most", len(c.Frames), maxCaptureFrames)
	}
	t := newTape(v.id, c)
	in := Instrument{
		Symbol: c.Symbol, Base: base, Quote: quote, Tick: "0.01", Lot: "0.00000001", Price: "100", Size: "1",
		Levels: maxTapeLevels, Every: 24 * time.Hour, // its steps are frames, so that no stride is longer than one
	}
	if all := t.levels(); len(all) > 0 {
		in.Tick, in.Lot = finest(all, 0), finest(all, 1)
		in.Price, in.Size = eightUnits(all[0][0], in.Tick), eightUnits(largest(all), in.Lot)
	}
	names := v.otherNames(in, t.product)
	if t.product != "" && t.product != c.Symbol { // Coinbase: the frames speak of the product whose book the symbol shows
		if in.Quote, ok = strings.CutPrefix(t.product, base+"-"); !ok {
			return fmt.Errorf("capture: the frames are about %s, which is no market of %s", t.product, base)
		}
		in.Symbol = t.product
	}
	if err := v.list(in, s.seed); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	if err := t.load(v.pairs[in.Symbol], c); err != nil {
		return err
	}
	for _, name := range names {
		if err := v.list(name, s.seed); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		v.pairs[name.Symbol].tape = t
	}
	return nil
}

// otherNames are the products that show the book of a captured one: those that are listed, and the one that was captured if the frames
// name another. Their units are those of the capture.
func (v *Venue) otherNames(in Instrument, product string) []Instrument {
	shown := orText(product, in.Symbol)
	var names []Instrument
	for _, p := range v.listed() {
		if p.Alias == shown && p.Symbol != in.Symbol {
			name := in
			name.Symbol, name.Base, name.Quote, name.Alias = p.Symbol, p.Base, p.Quote, shown
			names = append(names, name)
		}
	}
	if shown != in.Symbol {
		in.Alias = shown
		names = append(names, in)
	}
	return names
}

// newTape reads the frames of a capture and leaves out those that the base already holds.
func newTape(venue string, c *Capture) *tape {
	t := &tape{product: "", from: c.TakenAt, text: c.Base}
	if c.Base.ExchangeTime != nil {
		t.from = *c.Base.ExchangeTime
	}
	for _, f := range c.Frames {
		frame := readTapeFrame(venue, c.Symbol, f)
		if frame.product != "" && t.product == "" {
			t.product = frame.product
		}
		if len(t.frames) == 0 && c.Base.Sequence != nil && frame.within(*c.Base.Sequence) {
			continue
		}
		t.frames = append(t.frames, frame)
	}
	for i := range t.frames { // at their recorded pace; a clock that was set back makes no frame wait
		t.frames[i].after = max(t.frames[i].at.Sub(t.frames[0].at), 0)
		if i > 0 {
			t.frames[i].after = max(t.frames[i].after, t.frames[i-1].after)
		}
	}
	return t
}

// levels are all levels that the recording shows, the base's best bid first.
func (t *tape) levels() [][2]string {
	all := slices.Concat(t.text.Bids, t.text.Asks)
	for _, f := range t.frames {
		all = slices.Concat(all, f.bids, f.asks)
	}
	return all
}
