package client

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The reasons for which a streamed book is stale that are this client's own; the others are the gateway's.
const (
	ReasonDisconnected = "disconnected" // the connection to the gateway ended
	ReasonSilent       = "silent"       // the gateway said nothing for Options.Silence
	ReasonGap          = "gap"          // a message does not follow the one before it
	ReasonBadMessage   = "bad_message"  // a message cannot be read or cannot be true
	ReasonClosed       = "closed"       // this watch has ended
)

// maxDepth is the most levels of a side that are ever streamed; a book of more is not one of the gateway's.
const maxDepth = 400

// errGap is a message that does not follow the one before it.
var errGap = errors.New("a message is missing")

// topic is one pair of a watch: what is held of it, and what the consumer has not seen yet. It is guarded by the watch.
type topic struct {
	symbol  string
	channel Channel

	head       message // of the last version: everything but its levels
	bids, asks levels
	held       bool // a version is held, perhaps an old one
	synced     bool // it is the newest, and updates may follow
	fresh      Freshness
	since      time.Time

	again time.Time // when to subscribe anew; zero if it is not needed

	queued      bool // in the watch's queue, because one of those below is set
	failed      *StreamError
	statusDirty bool
	bookDirty   bool
	missed      uint64 // versions that the consumer did not see before the one that it sees next
}

func newTopic(symbol string, channel Channel) *topic {
	return &topic{symbol: symbol, channel: channel, asks: levels{rise: true}, fresh: Freshness{Status: StatusSyncing, Stale: true}}
}

// take applies a message. After an error nothing is synced, and what is held is the last version that was right.
func (t *topic) take(m *message, now time.Time) error {
	var err error
	switch m.Type {
	case typeStatus:
		t.status(m, now)
	case typeSnapshot:
		err = t.snapshot(m, now)
	case typeUpdate:
		err = t.update(m, now)
	}
	switch {
	case err == nil:
	case errors.Is(err, errGap):
		t.lose(ReasonGap, now)
	default:
		t.lose(ReasonBadMessage, now)
	}
	return err
}

// status notes what the gateway says about the pair. While a book is not synced it is not live, whatever the exchange's is.
func (t *topic) status(m *message, now time.Time) {
	t.again = time.Time{}
	switch m.Status {
	case StatusLive:
		if t.synced {
			t.set(StatusLive, "", m, now)
		}
		return // the snapshot that follows makes it live
	case StatusSyncing:
		if t.held { // an old version is held meanwhile
			t.synced = false
			t.set(StatusStale, StatusSyncing, m, now)
			return
		}
	case StatusWithheld:
		t.forget()
	case StatusUnsubscribed:
		t.synced, t.again = false, now.Add(againSoonest)
	}
	t.set(m.Status, m.Reason, m, now)
}

// forget drops what is held: an operator took it away.
func (t *topic) forget() {
	if t.bookDirty {
		t.missed++
	}
	t.held, t.synced, t.bookDirty = false, false, false
	t.bids.all, t.asks.all = nil, nil
}

// set notes a state, and that the consumer has to be told if it is another than before.
func (t *topic) set(status, reason string, m *message, now time.Time) {
	if t.fresh.Status != status || t.fresh.Reason != reason {
		t.since = m.Since
		if t.since.IsZero() {
			t.since = now
		}
		t.statusDirty = true
	}
	t.fresh.Status, t.fresh.Reason, t.fresh.Stale = status, reason, status != StatusLive
	t.clock(m, now)
}

// clock notes when the exchange last vouched for what is held. A message without it leaves the clock running.
func (t *topic) clock(m *message, now time.Time) {
	if m.ConfirmedAt.IsZero() || m.SentAt.IsZero() {
		return
	}
	t.fresh.Source, t.fresh.ConfirmedAt = "stream", m.ConfirmedAt
	t.fresh.Age, t.fresh.ReceivedAt = max(0, m.SentAt.Sub(m.ConfirmedAt)), now
	if !m.ChangedAt.IsZero() {
		t.fresh.ChangedAt = m.ChangedAt
	}
}

func (t *topic) snapshot(m *message, now time.Time) error {
	if m.PrevSeq != nil || m.Seq == 0 || m.Epoch == "" {
		return fmt.Errorf("%w: a snapshot with these numbers", errBadMessage)
	}
	bids, asks := levels{}, levels{rise: true}
	if err := bids.replace(m.Bids, depthOf(m)); err != nil {
		return err
	}
	if err := asks.replace(m.Asks, depthOf(m)); err != nil {
		return err
	}
	return t.adopt(m, bids, asks, m.Conflated, now)
}

func (t *topic) update(m *message, now time.Time) error {
	if !t.synced || m.Epoch != t.head.Epoch || m.PrevSeq == nil || *m.PrevSeq != t.head.Seq || m.Seq != t.head.Seq+1 {
		return errGap
	}
	// What is held has to stay whole if the message is not.
	bids, asks := levels{all: slices.Clone(t.bids.all)}, levels{all: slices.Clone(t.asks.all), rise: true}
	if err := bids.change(m.Bids, depthOf(m)); err != nil {
		return err
	}
	if err := asks.change(m.Asks, depthOf(m)); err != nil {
		return err
	}
	return t.adopt(m, bids, asks, 0, now)
}

// depthOf is how many levels of a side a message's book can have.
func depthOf(m *message) int { return min(max(m.Depth, 0), maxDepth) }

// adopt makes a version the one that is held.
func (t *topic) adopt(m *message, bids, asks levels, missed uint64, now time.Time) error {
	if len(bids.all) > 0 && len(asks.all) > 0 && bids.all[0].Price.Cmp(asks.all[0].Price) >= 0 {
		return fmt.Errorf("%w: the best bid is not below the best ask", errBadMessage)
	}
	if t.bookDirty {
		missed++ // the one before is not seen
	}
	t.bids, t.asks, t.head = bids, asks, *m
	t.head.Bids, t.head.Asks = nil, nil
	t.held, t.synced, t.bookDirty, t.missed = true, true, true, t.missed+missed
	reason := m.Reason
	if reason == "" && m.Status == t.fresh.Status {
		reason = t.fresh.Reason // versions do not repeat it
	}
	t.set(m.Status, reason, m, now)
	return nil
}

// lose notes that the gateway is not heard, or not understood, and why. What is held is stale from here on, before
// anything else is done, and a version that the consumer has not seen is not shown as news.
func (t *topic) lose(reason string, now time.Time) {
	if t.bookDirty {
		t.missed++
	}
	own := t.ownReason()
	t.synced, t.bookDirty, t.again = false, false, time.Time{}
	if own && reason != ReasonClosed {
		return // the first of them says why
	}
	status := StatusStale
	if !t.held {
		status = StatusSyncing
	}
	t.set(status, reason, new(message), now)
}

// ownReason tells whether this client itself found the pair stale, and nothing came since.
func (t *topic) ownReason() bool {
	switch t.fresh.Reason {
	case ReasonDisconnected, ReasonSilent, ReasonGap, ReasonBadMessage, ReasonClosed:
		return true
	}
	return false
}

// dirty tells whether there is something that the consumer has not seen.
func (t *topic) dirty() bool { return t.failed != nil || t.statusDirty || t.bookDirty }

// next takes what the consumer sees next: why something failed, then how it stands, then the newest version.
func (t *topic) next(exchange string) Event {
	switch {
	case t.failed != nil:
		e := t.failed
		t.failed = nil
		return e
	case t.statusDirty:
		t.statusDirty = false
		return &StreamStatus{Exchange: exchange, Symbol: t.symbol, Freshness: t.fresh, Since: t.since}
	case t.bookDirty:
		missed := t.missed
		t.bookDirty, t.missed = false, 0
		if t.channel == ChannelTicker {
			return t.ticker(exchange, missed)
		}
		return t.book(exchange, missed)
	}
	return nil
}

// book is a copy of what is held.
func (t *topic) book(exchange string, missed uint64) *StreamBook {
	m := &t.head
	return &StreamBook{
		Exchange: exchange, Symbol: t.symbol, ExchangeSymbol: m.ExchangeSymbol, Freshness: t.fresh, Since: t.since,
		Depth: m.Depth, Complete: m.Complete, Epoch: m.Epoch, Seq: m.Seq, Nonce: m.ExchangeSeq, ExchangeTime: m.ExchangeTime, Missed: missed,
		Bids: slices.Clone(t.bids.all), Asks: slices.Clone(t.asks.all),
	}
}

func (t *topic) ticker(exchange string, missed uint64) *StreamTicker {
	m := &t.head
	return &StreamTicker{
		Exchange: exchange, Symbol: t.symbol, ExchangeSymbol: m.ExchangeSymbol, Freshness: t.fresh, Since: t.since,
		Epoch: m.Epoch, Seq: m.Seq, Nonce: m.ExchangeSeq, ExchangeTime: m.ExchangeTime, Missed: missed, Top: m.Top,
	}
}
