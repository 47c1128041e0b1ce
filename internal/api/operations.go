package api

import (
	"context"

	"exchange-gateway/internal/ops"
)

// Board shows every circuit, gate and override to those who look. Nothing of it asks an exchange or changes anything.
type Board interface {
	// Snapshot is the JSON of an [ops.Overview], not older than 100 ms. It is shared and not changed here.
	Snapshot() []byte
	// Watch gives what is shown and what happens from now on, and first what happened after an event. lastEventID is the id
	// of the last event that the client has; any text may stand there. An error is that too many watch, see ops.MaxWatchers.
	Watch(lastEventID string) (Watcher, error)
	// Close ends every watch with a last word, and refuses those that come later.
	Close(reason string)
}

// BoardOf makes a Board of the one that there is.
func BoardOf(b *ops.Board) Board { return board{b} }

type board struct{ *ops.Board }

func (b board) Watch(lastEventID string) (Watcher, error) {
	w, err := b.Board.Watch(lastEventID)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Watcher is one watch. It is for one goroutine at a time.
type Watcher interface {
	// Next waits for what is to be sent, in the format of server-sent events. The bytes are shared with other watches and
	// not changed here. An error is the end: of ctx, of the watch, or, ops.ErrSlow, of a client that fell too far behind.
	Next(ctx context.Context) ([]byte, error)
	// Attend says that this one may have exchanges asked: open circuits are probed at their own pace while it lasts.
	Attend()
	Close()
}

// Desk carries out what operators order: it checks, writes down, and only then acts. A refusal is an *ops.RefusedError and
// changed nothing; another error came after the order was written down, and says what did not work.
type Desk interface {
	Do(ctx context.Context, o ops.Order) (ops.Outcome, error)
}

var _ Desk = (*ops.Desk)(nil)

// maxOperations bounds the requests of operators that are being answered at once. They have a bound of their own, or a flood
// of bots would keep out the one who came to end it.
const maxOperations = 64
