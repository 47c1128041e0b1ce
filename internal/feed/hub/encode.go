package hub

import (
	"encoding/json"
	"strconv"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// Messages are written by hand into one buffer: a book is mostly numbers, and their text is appended in place.

// naming is the part of every message of a topic that never changes, up to the text of the epoch.
func naming(t Topic, symbol string) []byte {
	b := append([]byte(nil), `,"channel":`...)
	b = appendQuoted(b, string(t.Channel))
	b = append(b, `,"exchange":`...)
	b = appendQuoted(b, string(t.Key.Exchange))
	b = append(b, `,"symbol":`...)
	b = appendQuoted(b, t.Key.Pair.String())
	b = append(b, `,"exchange_symbol":`...)
	b = appendQuoted(b, symbol)
	if t.Channel == ChannelOrderBook {
		b = append(b, `,"depth":`...)
		b = strconv.AppendInt(b, int64(t.Depth), 10)
	}
	return append(b, `,"epoch":`...)
}

// appendQuoted writes a name of an exchange's own, which may hold anything. It is called once per topic.
func appendQuoted(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON text
	}
	return append(b, text...)
}

func (s *stream) begin(b []byte, t Type) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, t...)
	b = append(b, '"')
	b = append(b, s.naming...)
	if s.epoch == "" {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = append(b, s.epoch...) // letters, digits, dashes and dots
	return append(b, '"')
}

// appendVersion writes what snapshots and updates have in common, all but what the book holds. prev is 0 for a snapshot.
func (s *stream) appendVersion(b []byte, t Type, prev, conflated uint64, now time.Time) []byte {
	b = s.begin(b, t)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, s.seq, 10)
	b = append(b, `,"prev_seq":`...)
	if prev == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, prev, 10)
	}
	b = append(b, `,"status":"`...)
	b = append(b, s.fresh.State...)
	b = append(b, '"')
	if s.topic.Channel == ChannelOrderBook {
		b = strconv.AppendBool(append(b, `,"complete":`...), s.complete)
	}
	b = append(b, `,"exchange_seq":`...)
	if s.sequence.Known {
		b = strconv.AppendInt(b, s.sequence.Value, 10)
	} else {
		b = append(b, "null"...)
	}
	b = appendTime(append(b, `,"exchange_time":`...), s.exchangeTime)
	b = appendTime(append(b, `,"confirmed_at":`...), s.confirmedAt)
	b = appendTime(append(b, `,"changed_at":`...), s.changedAt)
	b = appendTime(append(b, `,"sent_at":`...), now)
	b = append(b, `,"conflated":`...)
	return strconv.AppendUint(b, conflated, 10)
}

// appendStatus writes a whole status message. state is that of the topic, or "unsubscribed".
func (s *stream) appendStatus(b []byte, state string, now time.Time) []byte {
	b = s.begin(b, TypeStatus)
	b = append(b, `,"status":"`...)
	b = append(b, state...)
	b = append(b, `","reason":`...)
	if s.fresh.Reason == market.KindNone {
		b = append(b, "null"...)
	} else {
		b = append(b, '"')
		b = append(b, s.fresh.Reason.String()...)
		b = append(b, '"')
	}
	b = appendTime(append(b, `,"since":`...), s.fresh.Since)
	b = appendTime(append(b, `,"confirmed_at":`...), s.confirmedAt)
	b = appendTime(append(b, `,"sent_at":`...), now)
	return append(b, '}')
}

// appendSides writes both sides of a book and ends the message.
func appendSides(b []byte, bids, asks []market.Level) []byte {
	b = appendLevels(append(b, `,"bids":[`...), bids)
	b = appendLevels(append(b, `],"asks":[`...), asks)
	return append(b, ']', '}')
}

func appendLevels(b []byte, levels []market.Level) []byte {
	for i := range levels {
		if i > 0 {
			b = append(b, ',')
		}
		b = levels[i].AppendJSON(b)
	}
	return b
}

// appendBest writes the top of a book and ends the message. Mid and spread need both sides.
func appendBest(b []byte, best *feed.Best) []byte {
	b = appendNumber(append(b, `,"bid":`...), best.Bid.Price, best.HasBid)
	b = appendNumber(append(b, `,"bidVolume":`...), best.Bid.Size, best.HasBid)
	b = appendNumber(append(b, `,"ask":`...), best.Ask.Price, best.HasAsk)
	b = appendNumber(append(b, `,"askVolume":`...), best.Ask.Size, best.HasAsk)
	var mid, spread market.Number
	both := best.HasBid && best.HasAsk
	if both {
		mid, spread = market.Mid(best.Bid.Price, best.Ask.Price), market.Spread(best.Bid.Price, best.Ask.Price)
	}
	b = appendNumber(append(b, `,"mid":`...), mid, both)
	b = appendNumber(append(b, `,"spread":`...), spread, both)
	return append(b, '}')
}

func appendNumber(b []byte, n market.Number, has bool) []byte {
	if !has {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = n.AppendText(b)
	return append(b, '"')
}

// appendTime writes RFC 3339 in UTC with the nanoseconds that there are, null for the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = clock.Wall(t).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}
