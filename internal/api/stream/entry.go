package stream

import (
	"errors"
	"net/netip"
	"time"

	"exchange-gateway/internal/market"
)

// Admission is what a client was let in with. The zero value is a client that has yet to send its key.
type Admission struct {
	// Client is on whose account lists are asked for. Nil: nobody's.
	Client market.Client
	// Holder is the name on whose account books are streamed. Empty: nobody's.
	Holder string
	// Watch has a function called once, in a goroutine of its own, when the key is no longer valid; after stop it neither runs
	// nor will. Nil: that never happens.
	Watch func(end func()) (stop func())
	// Leave is called once, when the client has gone, was not let in after all, or has another admission. Nil: nobody waits for that.
	Leave func()
}

func (a *Admission) watch(end func()) (stop func()) {
	if a.Watch == nil {
		return func() {}
	}
	return a.Watch(end)
}

func (a *Admission) leave() {
	if a.Leave != nil {
		a.Leave()
	}
}

// Entry is how a client comes in.
type Entry struct {
	Admission // of a key in the request's header or of a caller without one; zero where NeedsKey is set
	// NeedsKey is set where no key came with the request and one is needed: the first message has to bring it within KeyBound.
	NeedsKey bool
	// From is the network that the client comes from, and what MaxUnnamedFrom is counted by. Invalid: nobody knows, and
	// MaxUnnamed alone bounds those.
	From netip.Addr
	// Admit checks the key of a first message. Its errors are put into words by Config.Describe. Nil where a key came with the request:
	// then no message brings another.
	Admit func(key string) (Admission, error)
}

// KeyBound is how long a client that needs a key may take to send it.
const KeyBound = 5 * time.Second

// MaxUnnamed is how many clients that need a key may be connected without having sent it. Each is closed within KeyBound;
// a client beyond the bound is refused as where there are too many.
const MaxUnnamed = 1000

// MaxUnnamedFrom is how many of them may come from one network, so that one alone shuts nobody else out. Bots of one machine
// that open more at once than this are refused for one round trip, or send their keys in headers.
const MaxUnnamedFrom = 50

// ErrCrowded refuses a client beyond MaxUnnamedFrom.
var ErrCrowded = errors.New("too many stream clients of this address have yet to send their key")

// ErrKeyNeeded is a client whose first message should have brought a key and did not.
var ErrKeyNeeded = errors.New("the first message has to bring a key")
