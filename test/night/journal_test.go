package night

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
)

// journal takes the gateway's log at debug level: the text of all of it if asked, and the number of lines above info with
// the first of them.
type journal struct {
	slog.Handler
	kept *kept
}

type kept struct {
	mu    sync.Mutex
	text  *bytes.Buffer // nil keeps no text
	above map[string]int
}

func newJournal(text *bytes.Buffer) *journal {
	k := &kept{text: text, above: map[string]int{}}
	return &journal{Handler: slog.NewTextHandler(k, &slog.HandlerOptions{Level: slog.LevelDebug}), kept: k}
}

// debugLog is a log at debug level into a buffer.
func debugLog(text *bytes.Buffer) *slog.Logger { return slog.New(newJournal(text)) }

// Write implements io.Writer for the text handler.
func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.text != nil {
		k.text.Write(p)
	}
	return len(p), nil
}

// Handle implements slog.Handler.
func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo {
		j.kept.mu.Lock()
		j.kept.above[r.Message]++
		j.kept.mu.Unlock()
	}
	return j.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (j *journal) WithAttrs(a []slog.Attr) slog.Handler {
	return &journal{j.Handler.WithAttrs(a), j.kept}
}

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(name string) slog.Handler {
	return &journal{j.Handler.WithGroup(name), j.kept}
}

// warnings is how many lines above info there were, by message.
func (j *journal) warnings() (n int, by map[string]int) {
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	by = map[string]int{}
	for message, count := range j.kept.above {
		by[message] = count
		n += count
	}
	return n, by
}
