package feed

import (
	"cmp"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// Status is one exchange's streams as they stand.
type Status struct {
	Exchange    market.ExchangeID
	Connections []ConnectionStatus
	Syncing     int // books that were never live
	Live        int
	Stale       int
	Cut         bool // by Feed.Cut: nothing is connected until Wake
	WarmUp      WarmUp
}

// ConnectionStatus is one open connection.
type ConnectionStatus struct {
	Since     time.Time
	LastFrame time.Time // of any kind, pings included
	Books     int       // that are subscribed on it
	Retiring  bool      // another one takes its place
}

// WarmUp is how far the books are that were asked for.
type WarmUp struct {
	Wanted int // books that are streamed or should be
	Synced int // of these, with the exchange's book loaded and not lost since
	Queued int // snapshots that wait to be asked for, or are being asked for
	// ETA is how long the queue will take at the pace measured; zero without a queue, or as long as nothing was measured.
	ETA time.Duration
}

// BookStatus is one streamed book.
type BookStatus struct {
	Key         Key
	Symbol      string // the exchange's own name of the pair of Key
	Freshness   Freshness
	Watched     bool // somebody holds it; otherwise it was read lately
	Epoch       string
	Sequence    market.Sequence
	ConfirmedAt time.Time
	ChangedAt   time.Time
	Bid, Ask    market.Optional // best prices, absent on an empty side and without a book

	StreamedSince time.Time   // when it was first asked for, and not released since
	Resyncs       int         // times since then that what was shown was lost, and had to be started anew
	LastResync    time.Time   // zero without one
	ResyncReason  market.Kind // of the last one
}

// Streams tells whether an exchange's books can be streamed.
func (f *Feed) Streams(id market.ExchangeID) bool { return f.venue(id) != nil }

// Status is an exchange's streams as they stand; nothing but the name for one without streams.
func (f *Feed) Status(id market.ExchangeID) Status {
	out := Status{Exchange: id}
	v := f.venue(id)
	if v == nil {
		return out
	}
	v.mu.Lock()
	out.Cut = v.cut
	v.mu.Unlock()
	for _, s := range v.list() {
		s.describe(&out)
	}
	out.WarmUp.Queued, out.WarmUp.ETA = v.queue.status()
	return out
}

func (s *shard) describe(out *Status) {
	s.enter()
	defer s.mu.Unlock()
	for _, l := range []*link{s.cur, s.next} {
		if l != nil && l.over == nil {
			out.Connections = append(out.Connections, ConnectionStatus{
				Since: l.since, LastFrame: l.conn.LastFrame(), Books: len(l.seats),
				Retiring: l.retiring || !l.suspectAt.IsZero() || l == s.cur && s.next != nil,
			})
		}
	}
	for _, b := range s.books {
		out.WarmUp.Wanted++
		if b.shown != nil && b.shown.synced() {
			out.WarmUp.Synced++
		}
		switch b.freshness(s.now).State {
		case StateSyncing:
			out.Syncing++
		case StateLive:
			out.Live++
		case StateStale:
			out.Stale++
		}
	}
}

// Books lists an exchange's streamed books by pair, once for each name under which they are asked for. It may be called
// every second: it copies no levels, and holds each connection's lock for well under a microsecond a book.
func (f *Feed) Books(id market.ExchangeID) []BookStatus {
	v := f.venue(id)
	if v == nil {
		return nil
	}
	out := make([]BookStatus, 0, len(*v.labels.Load()))
	for _, s := range v.list() {
		s.enter()
		for _, b := range s.books {
			for _, n := range b.labels {
				out = append(out, n.status())
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b BookStatus) int {
		return cmp.Or(cmp.Compare(a.Key.Pair.Base, b.Key.Pair.Base), cmp.Compare(a.Key.Pair.Quote, b.Key.Pair.Quote))
	})
	return out
}
