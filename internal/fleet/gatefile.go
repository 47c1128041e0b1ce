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
	gateFileName    = "gates.json"
	gateLockName    = "gates.lock"
	gateFileVersion = 1
	// maxGateFile is the largest file that is read: 4,096 gates take about 700 KB.
	maxGateFile = 4 << 20
)

var errUnreadable = errors.New("not a gate file")

// GateFile keeps gates in a directory: one small JSON file, replaced as a whole, so that whoever reads it at any time,
// after a power cut too, finds the old gates or the new ones. Several gateways may share a directory: writing takes a
// lock and joins what the others wrote. It is safe for concurrent use.
type GateFile struct {
	dir directory
	log *slog.Logger

	writing chan struct{} // holds a token while somebody writes; those who wait leave with their context

	mu      sync.Mutex
	known   records
	changed uint64 // counts changes of known
	written uint64 // the change that is on disk
	seen    stamp  // of the file whose gates are known, zero before the first
}

// NewGateFile keeps gates in dir, which is made when it is first needed. It does no I/O.
func NewGateFile(dir string, log *slog.Logger) *GateFile {
	return &GateFile{dir: directory(dir), log: log, writing: make(chan struct{}, 1), known: records{}}
}

// Load returns what the directory holds. No file is no gates. A file that is no gate file is moved aside, logged, and
// counts as none. The error is that the directory cannot be read or could not be written, with the gates all the same.
func (f *GateFile) Load(ctx context.Context) ([]market.GateRecord, error) {
	held, err := f.read()
	if errors.Is(err, errUnreadable) {
		// Once more behind the lock: in the meantime another gateway may have put a good file there.
		err = f.dir.locked(ctx, gateLockName, func() error {
			held, err = f.readOrSetAside()
			return err
		})
	} else if lockErr := f.dir.locked(ctx, gateLockName, func() error { return nil }); err == nil {
		err = lockErr // learn now, not in the first ban, that nothing can be written
	}
	now := clock.WallNow()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range held {
		f.known.add(r)
	}
	f.known.prune(now)
	return f.known.list(), err
}

// Save writes one gate down and returns when it is on the disk. Gates that are saved at the same time are written
// together. A disk that hangs holds the one Save that writes; the others leave when their context ends.
func (f *GateFile) Save(ctx context.Context, r market.GateRecord) error {
	if !valid(r) {
		return fmt.Errorf("save gate: %w: %+v", errInvalid, r)
	}
	f.mu.Lock()
	f.known.add(r)
	f.changed++
	mine := f.changed
	f.mu.Unlock()

	select {
	case f.writing <- struct{}{}:
		defer func() { <-f.writing }()
	case <-ctx.Done():
		return fmt.Errorf("save gate: %w", context.Cause(ctx))
	}
	f.mu.Lock()
	done := f.written >= mine
	f.mu.Unlock()
	if done {
		return nil
	}
	if err := f.dir.locked(ctx, gateLockName, f.replace); err != nil {
		return fmt.Errorf("save gate: %w", err)
	}
	return nil
}

// replace writes what is known, joined with what the file holds. The directory's lock is held.
func (f *GateFile) replace() error {
	held, err := f.readOrSetAside()
	if err != nil {
		return err
	}
	f.mu.Lock()
	news := f.known.news(held)
	for _, r := range held {
		f.known.add(r)
	}
	f.known.prune(clock.WallNow())
	list, change := f.known.list(), f.changed
	f.mu.Unlock()

	text, err := encodeGates(list)
	if err != nil {
		return err
	}
	if err := f.dir.replace(gateFileName, text); err != nil {
		return err
	}
	seen := f.dir.look(gateFileName) // the lock is held: nobody else replaced it since
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = max(f.written, change)
	if f.seen = seen; news {
		f.seen = stamp{} // News has not passed on yet what another gateway wrote before us
	}
	return nil
}

// read returns the gates of the file.
func (f *GateFile) read() ([]market.GateRecord, error) {
	text, err := f.dir.read(gateFileName, maxGateFile)
	if text == nil || err != nil {
		return nil, err
	}
	return decodeGates(text)
}

// readOrSetAside is read, except that a file that is no gate file is moved aside and counts as none. One is kept: the
// last. The directory's lock is held.
func (f *GateFile) readOrSetAside() ([]market.GateRecord, error) {
	held, err := f.read()
	if !errors.Is(err, errUnreadable) {
		return held, err
	}
	aside, asideErr := f.dir.setAside(gateFileName)
	f.log.Error("gate file cannot be read and is set aside: gates that were closed before are not known",
		slog.String("path", f.dir.path(gateFileName)), slog.String("aside", aside), slog.Any("err", err))
	return nil, asideErr
}

// gateFile is the file's text. Fields are added, never changed; another meaning is another version.
type gateFile struct {
	Version int       `json:"version"`
	Gates   []gateRow `json:"gates"`
}

type gateRow struct {
	Exchange  market.ExchangeID `json:"exchange"`
	Scope     market.ScopeKind  `json:"scope"`
	Name      string            `json:"name,omitempty"`
	Kind      string            `json:"kind"`
	Until     time.Time         `json:"until"`
	Step      int               `json:"step"`
	UpdatedAt time.Time         `json:"updated_at"`
}

func encodeGates(list []market.GateRecord) ([]byte, error) {
	file := gateFile{Version: gateFileVersion, Gates: make([]gateRow, len(list))}
	for i, r := range list {
		file.Gates[i] = gateRow{
			Exchange: r.Exchange, Scope: r.Scope.Kind, Name: r.Scope.Name, Kind: r.Kind.String(),
			Until: r.Until.UTC(), Step: r.Step, UpdatedAt: r.UpdatedAt.UTC(),
		}
	}
	text, err := json.MarshalIndent(file, "", " ")
	return append(text, '\n'), err
}

// decodeGates reads a file. It is all or nothing: a file of which a part cannot be true was not written by us.
func decodeGates(text []byte) ([]market.GateRecord, error) {
	if len(text) > maxGateFile {
		return nil, fmt.Errorf("%w: over %d bytes", errUnreadable, maxGateFile)
	}
	var file gateFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if file.Version != gateFileVersion {
		return nil, fmt.Errorf("%w: version %d, not %d", errUnreadable, file.Version, gateFileVersion)
	}
	if len(file.Gates) > maxGates {
		return nil, fmt.Errorf("%w: %d gates", errUnreadable, len(file.Gates))
	}
	list := make([]market.GateRecord, len(file.Gates))
	for i, g := range file.Gates {
		list[i] = market.GateRecord{
			Exchange: g.Exchange, Scope: market.Scope{Kind: g.Scope, Name: g.Name}, Kind: kindOf(g.Kind),
			Until: g.Until, Step: g.Step, UpdatedAt: g.UpdatedAt,
		}
		if !valid(list[i]) {
			return nil, fmt.Errorf("%w: gate %d", errUnreadable, i)
		}
	}
	return list, nil
}
