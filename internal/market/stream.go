package market

import (
	"context"
	"time"
)

// Streamer is the streaming side of a venue: connections on which the exchange sends its books as they change. Nothing
// here repeats, paces or keeps anything: package feed does.
type Streamer interface {
	// StreamRules are the bounds and habits of the exchange's streams. They never change.
	StreamRules() StreamRules
	// StreamPlan states what one act on a stream touches, n books being concerned, as Plan does for a call.
	StreamPlan(act StreamAct, n int) Call
	// Dial opens one connection through the door. The caller closes it. Every error is a *Error.
	Dial(ctx context.Context) (StreamConn, error)
}

// StreamAct is something that is done to a stream and counts towards a limit of the exchange.
type StreamAct uint8

// The closed set of acts.
const (
	StreamConnect   StreamAct = iota // a connection and its handshake
	StreamSubscribe                  // messages that add books to a connection, or take them off
)

// StreamRules are the bounds and habits of an exchange's streams.
type StreamRules struct {
	Books    int           // most books on one connection
	Batch    int           // most books in one Subscribe or Unsubscribe
	VouchFor time.Duration // how long after a book's own last event other frames of its connection vouch for it
	Recheck  bool          // past VouchFor, a REST answer that agrees vouches as an event of the book's own
	Top      bool          // there is a channel of the best bid and ask alone, faster than the book's
	// RotateAfter and RotateBefore bound the age at which a connection is replaced by a new one, before the exchange cuts
	// it. Zero: the exchange sets no lifetime, and a connection is replaced only when it says that it will end.
	RotateAfter, RotateBefore time.Duration
	// SnapshotDepth is how many levels a side a snapshot asked for with StreamWanted has to have.
	SnapshotDepth int
	Silence       SilenceRules
}

// SilenceRules say how a connection is found out on which nothing comes any more, though nobody closed it. Without ProbeAfter
// none is.
type SilenceRules struct {
	ProbeAfter  time.Duration // when nothing came for so long, the connection is pinged
	ProbeSooner time.Duration // the same while the exchange's order books fail by REST
	AnswerIn    time.Duration // when nothing came so long after the ping either, its books are not live, and it is replaced
	Most        time.Duration // after so long without anything its books are not live, whether it was pinged or not
	Heartbeats  bool          // the exchange sends a frame each second by itself, so it is not pinged: their absence is the sign
}

// StreamChannel is what of a pair is streamed.
type StreamChannel uint8

// The closed set of channels.
const (
	StreamBook StreamChannel = iota // every change of the book
	StreamBest                      // best bid and ask alone; only where StreamRules.Top
)

// StreamSub is one subscription.
type StreamSub struct {
	Listing Listing
	Channel StreamChannel
}

// StreamSymbol is the name under which the exchange streams a listing's book: that of the pair whose book it shows.
func (l Listing) StreamSymbol() string {
	if l.AliasOf != "" {
		return l.AliasOf
	}
	return l.Symbol
}

// StreamConn is one connection with the state of the exchange's procedure for the books on it. A connection on
// which nothing came for as long as the exchange itself would take it for dead ends by itself.
//
// Read belongs to one goroutine. Decode, Load, Distrust and Tick change the procedure's state, so the caller never runs two
// of them at once; what they return is valid until the next of them. The other methods may be called at any time.
type StreamConn interface {
	// Read waits for the next message. Its bytes are valid until the next Read. An error ends the connection.
	Read(ctx context.Context) ([]byte, error)
	// LastFrame is when a frame of any kind last came, pings and pongs included.
	LastFrame() time.Time
	// LastByte is when anything last came, a part of a message included. It tells that a connection is not dead; what confirms
	// books are whole frames.
	LastByte() time.Time
	// Ping has the exchange asked for a frame, at the connection's pace, and does not wait for that. It tells whether the host
	// of this connection is known to answer: whether it ever did, on this connection or another.
	Ping() (answers bool)
	// Subscribe sends what starts subscriptions, at most StreamRules.Batch of them, at the exchange's pace. That it returns
	// says that it was sent; StreamAccepted, StreamRefused or data say what came of it.
	Subscribe(ctx context.Context, subs []StreamSub) error
	// Unsubscribe ends subscriptions. The procedure forgets their books at once.
	Unsubscribe(ctx context.Context, subs []StreamSub) error
	// Decode tells what a message of Read says. A message that cannot be read is StreamLost for the book it was about, or for
	// every book of the connection where that cannot be told.
	Decode(raw []byte, at time.Time) []StreamEvent
	// Load hands over the REST snapshot that StreamWanted asked for.
	Load(book *OrderBook) []StreamEvent
	// Distrust tells the procedure that the feed found a book wrong (crossed, or not the exchange's own by REST). It answers
	// with StreamLost and what is needed to start it anew.
	Distrust(symbol string, why error) []StreamEvent
	// Tick lets the procedure notice what did not come. It is called about once a second.
	Tick(now time.Time) []StreamEvent
	// Close ends the connection and waits for what it started. Read then ends.
	Close()
}

// StreamEventKind is what a message of a stream came to.
type StreamEventKind uint8

// The closed set of events.
const (
	StreamSnapshot StreamEventKind = iota // the book of Symbol is exactly Bids and Asks
	StreamUpdate                          // levels of the book of Symbol that changed, next after what came before
	StreamVouch                           // the exchange says that the book of Symbol is still as it was
	StreamTop                             // best bid and ask of Symbol, from their own channel
	StreamAccepted                        // the exchange confirms the subscription of Symbol
	StreamRefused                         // the exchange will not stream Symbol: Err says why
	StreamWanted                          // the procedure needs a REST snapshot of Symbol, see Load
	StreamLost                            // the book of Symbol, or every book of the connection if "", may be wrong from here on
	StreamRetiring                        // the exchange will close the connection soon: it is time for another one
)

// StreamRemedy is how a lost book comes back.
type StreamRemedy uint8

// The closed set of remedies.
const (
	RemedySnapshot    StreamRemedy = iota // by itself: StreamWanted follows, or the exchange sends a snapshot
	RemedyResubscribe                     // end and start the subscription
	RemedyReconnect                       // only a new connection helps
)

// StreamEvent is one thing that a message said. Bids and Asks belong to the decoder.
type StreamEvent struct {
	Kind   StreamEventKind
	Symbol string
	// Channel is which subscription of Symbol StreamAccepted, StreamRefused and StreamLost are about: without its StreamBest
	// a book goes on.
	Channel StreamChannel
	// Bids and Asks are both sides of a snapshot in any order, the changed levels of an update with their absolute sizes
	// (zero removes a level, known or not), or the best levels of StreamTop (an empty side has none).
	Bids, Asks   []Level
	Sequence     Sequence  // of the book after this event; unknown where the exchange has none per book
	ExchangeTime time.Time // the exchange's own stamp, zero without one
	// ConfirmedAt is when the exchange vouched for the levels where that was not the arrival of the message: a snapshot that
	// came by REST.
	ConfirmedAt time.Time
	// Limit is how many levels a side a snapshot was cut to by the exchange; a side with fewer is whole. 0: nothing is cut.
	Limit int
	// Window tells that the exchange sends deletions for levels that leave Limit, so that what is held stays exact. Without
	// it nothing is known beyond the last level of a full side of the snapshot, ever.
	Window bool
	Remedy StreamRemedy // of StreamLost
	Err    error        // of StreamLost and StreamRefused: a *Error
}
