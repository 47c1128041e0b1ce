package fleet

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The decoders of outside bytes, for fuzzing.
var (
	DecodeGates = decodeGates
	EncodeGates = encodeGates
	ParseGate   = parseGate
	Merge       = merge
)

// HoldLock takes the lock of a state directory as another process would.
func HoldLock(t *testing.T, dir string) (release func()) {
	t.Helper()
	l, err := os.OpenFile(filepath.Join(dir, gateLockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := tryLock(l); !held || err != nil {
		t.Fatalf("lock: %v, %v", held, err)
	}
	return func() { _ = l.Close() }
}

// The port of a place, for fakes.
type (
	Store = store
	Mark  = mark
	Marks = marks
	Batch = batch
	Past  = past
)

// The decoders of outside bytes, and what joins copies.
var (
	DecodeOverrides = decodeOverrides
	EncodeOverrides = encodeOverrides
	ParseOverride   = parseOverride
	JoinMarks       = join
	NextVersion     = next
)

// Read is line, for fuzzing.
func (p *past) Read(text []byte) { p.line(text) }

// Found is what was read.
func (p *past) Found() (events, rubbish, unknown int) { return len(p.events), p.rubbish, p.unknown }

// Texts are the lines of a batch.
func (b batch) Texts() (texts []string) {
	for _, l := range b.lines {
		texts = append(texts, string(l.text))
	}
	return texts
}

// Gap is up to when events are missing.
func (b batch) Gap() time.Time { return b.gap }

// Durable tells whether it has to survive a power cut.
func (b batch) Durable() bool { return b.durable() }

// OperationsIn keeps operations in places under test: a directory, Redis.
func OperationsIn(log *slog.Logger, dir, shared Store) *Operations {
	o := newOperations(log)
	o.join(DegradedFile, "state_dir", fileLimit, dir)
	o.join(DegradedOperations, "redis", redisTimeout, shared)
	return o
}

// SmallFiles makes a history begin a new file past a size.
func SmallFiles(o *Operations, most int64) *Operations {
	for _, p := range o.places {
		if s, ok := p.store.(fileStore); ok {
			s.most = most
		}
	}
	return o
}

// Patient makes Append, Save and Load wait for as long as a busy machine may take.
func Patient(o *Operations) *Operations {
	o.appendWait, o.saveWait, o.loadWait = 20*time.Second, 20*time.Second, 20*time.Second
	for _, p := range o.places {
		p.limit = 20 * time.Second
	}
	return o
}

// AddMark joins a copy.
func AddMark(ms Marks, m Mark) { ms.add(m) }

// Touch says in every place that the history is in use.
func Touch(t *testing.T, o *Operations) {
	t.Helper()
	for _, p := range o.places {
		if err := p.store.Touch(t.Context()); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}
