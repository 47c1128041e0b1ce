package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	overrideFileName    = "overrides.json"
	overrideFileVersion = 1
	// maxOverrideFile is the largest file that is read: 2,000 overrides with the longest reasons take 6 MB.
	maxOverrideFile = 8 << 20
	// operationsLock is not the lock of the gates: a refused answer that waits for its gate does not wait for an audit.
	operationsLock = "operations.lock"
)

var errOverrideFile = errors.New("not a file of overrides")

// overrideFile keeps overrides in a state directory: one file, replaced as a whole, joined with what others wrote.
type overrideFile struct {
	dir directory
	log *slog.Logger

	mu   sync.Mutex
	seen stamp // of the file whose overrides were passed on
	read bool  // there was one look at least
}

// Look returns what the file holds, unless that was returned before and nobody else has replaced the file since.
func (f *overrideFile) Look(ctx context.Context, again bool) (held []mark, changed bool, err error) {
	now := f.dir.look(overrideFileName)
	f.mu.Lock()
	same := f.read && f.seen.same(now)
	f.mu.Unlock()
	if same && !again {
		return nil, false, nil
	}
	// Behind the lock, which also tells now, not when an operator needs it, that nothing can be written.
	err = f.dir.locked(ctx, operationsLock, func() error {
		now = f.dir.look(overrideFileName)
		held, err = f.hold()
		return err
	})
	if err != nil {
		if held, readErr := f.peek(); readErr == nil && len(held) > 0 {
			return held, true, err // a directory that cannot be written may still be read
		}
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.read = now, true
	return held, true, nil
}

// Put writes overrides down, on the disk when it returns, and returns what others wrote.
func (f *overrideFile) Put(ctx context.Context, list []mark) (held []mark, err error) {
	err = f.dir.locked(ctx, operationsLock, func() error {
		if held, err = f.hold(); err != nil {
			return err
		}
		all := marks{}
		for _, m := range held {
			all.add(m)
		}
		for _, m := range list {
			all.add(m)
		}
		all.prune(clock.Now())
		text, err := encodeOverrides(all.list())
		if err != nil {
			return err
		}
		if err := f.dir.replace(overrideFileName, text); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen, f.read = f.dir.look(overrideFileName), true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("keep overrides: %w", err)
	}
	return held, nil
}

func (f *overrideFile) peek() ([]mark, error) {
	text, err := f.dir.read(overrideFileName, maxOverrideFile)
	if text == nil || err != nil {
		return nil, err
	}
	return decodeOverrides(text, clock.WallNow())
}

// hold is peek, except that a file that is none of ours is moved aside and counts as none. The lock is held.
func (f *overrideFile) hold() ([]mark, error) {
	held, err := f.peek()
	if !errors.Is(err, errOverrideFile) {
		return held, err
	}
	aside, asideErr := f.dir.setAside(overrideFileName)
	f.log.Error("file of overrides cannot be read and is set aside: isolations from before are not known",
		slog.String("path", f.dir.path(overrideFileName)), slog.String("aside", aside), slog.Any("err", err))
	return nil, asideErr
}

// overridesDoc is the file's text. Fields are added, never changed; another meaning is another version.
type overridesDoc struct {
	Version   int           `json:"version"`
	Overrides []overrideRow `json:"overrides"`
}

type overrideRow struct {
	Kind     market.OverrideKind `json:"kind"`
	Exchange market.ExchangeID   `json:"exchange"`
	Class    market.Class        `json:"class,omitempty"`
	Symbol   string              `json:"symbol,omitempty"`
	Actor    string              `json:"actor,omitempty"`
	Reason   string              `json:"reason,omitempty"`
	Since    time.Time           `json:"since"`
	Until    time.Time           `json:"until"`
	Released bool                `json:"released,omitempty"`
	Last     time.Time           `json:"last_until"`
	Version  version             `json:"version"`
}

func encodeOverrides(list []mark) ([]byte, error) {
	doc := overridesDoc{Version: overrideFileVersion, Overrides: make([]overrideRow, len(list))}
	for i, m := range list {
		doc.Overrides[i] = overrideRow{
			Kind: m.Kind, Exchange: m.Exchange, Class: m.Class, Symbol: symbolOf(m.Pair), Actor: m.Actor, Reason: m.Reason,
			Since: m.Since.UTC(), Until: m.Until.UTC(), Released: m.Released, Last: m.Last.UTC(), Version: m.Version,
		}
	}
	text, err := json.MarshalIndent(doc, "", " ")
	return append(text, '\n'), err
}

// decodeOverrides reads a file. It is all or nothing: a file of which a part cannot be true was not written by us.
func decodeOverrides(text []byte, now time.Time) ([]mark, error) {
	if len(text) > maxOverrideFile {
		return nil, fmt.Errorf("%w: over %d bytes", errOverrideFile, maxOverrideFile)
	}
	var doc overridesDoc
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errOverrideFile, err)
	}
	if doc.Version != overrideFileVersion {
		return nil, fmt.Errorf("%w: version %d, not %d", errOverrideFile, doc.Version, overrideFileVersion)
	}
	if len(doc.Overrides) > 4*maxMarks { // several gateways may have added some at once
		return nil, fmt.Errorf("%w: %d overrides", errOverrideFile, len(doc.Overrides))
	}
	list := make([]mark, len(doc.Overrides))
	for i, r := range doc.Overrides {
		pair, err := pairOf(r.Symbol)
		if err != nil {
			return nil, fmt.Errorf("%w: override %d: %w", errOverrideFile, i, err)
		}
		list[i] = mark{
			Override: market.Override{
				Kind: r.Kind, Exchange: r.Exchange, Class: r.Class, Pair: pair, Actor: r.Actor, Reason: r.Reason,
				Since: r.Since, Until: r.Until, Ends: clock.At(r.Until),
			},
			Version: r.Version, Released: r.Released, Last: r.Last,
		}
		if err := list[i].check(now); err != nil {
			return nil, fmt.Errorf("%w: override %d: %w", errOverrideFile, i, err)
		}
	}
	return list, nil
}

func symbolOf(p market.Pair) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

func pairOf(symbol string) (market.Pair, error) {
	if symbol == "" {
		return market.Pair{}, nil
	}
	return market.ParsePair(symbol)
}
