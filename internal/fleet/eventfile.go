package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/regular"
)

const (
	// maxEventFile is when a history begins a new file; the one before it is kept, and the one before that is not. 4 MB are
	// 13,000 events of 300 bytes, so that both hold the 20,000 that are kept.
	maxEventFile   = 4 << 20
	eventFileStart = "events-"
	eventFileEnd   = ".jsonl"
	eventFileOld   = eventFileEnd + ".1"
)

// eventFile keeps the history of one instance in a state directory: a file of lines that is only added to, and the full
// one before it.
type eventFile struct {
	dir  directory
	name string // without its ending
	most int64
}

func newEventFile(dir directory, instance string) *eventFile {
	return &eventFile{dir: dir, name: eventFileStart + instance, most: maxEventFile}
}

// Write adds lines at the end. An operator's action is on the disk when it returns: an audit that a power cut takes away is
// none. Other events are in the hands of the kernel, which a kill of the process does not undo; waiting for the disk at
// every change of a circuit would cost milliseconds for something that the exchange itself shows again.
func (f *eventFile) Write(ctx context.Context, b batch) error {
	err := f.dir.locked(ctx, operationsLock, func() error { return f.add(b) })
	if err != nil {
		return fmt.Errorf("keep events: %w", err)
	}
	return nil
}

// add is Write behind the lock.
func (f *eventFile) add(b batch) (err error) {
	w, size, fresh, err := f.open()
	if err != nil {
		return err
	}
	text, err := f.text(w, size, b, fresh)
	if err == nil && len(text) > 0 {
		_, err = w.Write(text)
	}
	if err == nil && b.durable() {
		err = w.Sync()
	}
	if err != nil {
		err = errors.Join(err, w.Truncate(size)) // half a batch would be there twice when it is written again
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err == nil && size == 0 && b.durable() {
		err = f.dir.sync()
	}
	return err
}

// open opens the file for adding to it, after it has put a full one aside. Fresh is a history that begins.
func (f *eventFile) open() (w *os.File, size int64, fresh bool, err error) {
	path, old := f.dir.path(f.name+eventFileEnd), f.dir.path(f.name+eventFileOld)
	info, err := os.Stat(path)
	if err == nil && info.Size() >= f.most {
		if err := os.Rename(path, old); err != nil {
			return nil, 0, false, err
		}
	}
	if w, err = regular.Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, 0, false, err
	}
	if info, err = w.Stat(); err != nil {
		return nil, 0, false, errors.Join(err, w.Close())
	}
	if size = info.Size(); size == 0 {
		_, err := os.Stat(old)
		fresh = errors.Is(err, fs.ErrNotExist)
	}
	return w, size, fresh, nil
}

// text is what has to be added so that a batch is there.
func (f *eventFile) text(w *os.File, size int64, b batch, fresh bool) ([]byte, error) {
	var text bytes.Buffer
	if size > 0 {
		last := []byte{0}
		if _, err := w.ReadAt(last, size-1); err != nil {
			return nil, err
		}
		if last[0] != '\n' {
			text.WriteByte('\n') // a kill tore the last line: it is not to take ours with it
		}
	}
	since := b.gap
	if fresh && since.IsZero() {
		since = begins(b)
	}
	if !since.IsZero() {
		mark, err := markerLine(since)
		if err != nil {
			return nil, err
		}
		text.Write(append(mark, '\n'))
	}
	for _, l := range b.lines {
		text.Write(append(bytes.Clone(l.text), '\n'))
	}
	return text.Bytes(), nil
}

// begins is since when a history is complete that begins with a batch.
func begins(b batch) time.Time {
	if len(b.lines) > 0 {
		return b.lines[0].at
	}
	return clock.WallNow()
}

// Read returns the history, and forgets those of instances of which nothing was heard for a day.
func (f *eventFile) Read(ctx context.Context) (p past, err error) {
	var sweepErr error
	lockErr := f.dir.locked(ctx, operationsLock, func() error {
		sweepErr = f.sweep(clock.WallNow())
		p, err = f.both(ctx)
		return err
	})
	if lockErr != nil && err == nil { // it cannot be written, and may be read
		p, err = f.both(ctx)
		err = errors.Join(err, lockErr)
	}
	if err = errors.Join(err, sweepErr); err != nil {
		return p, fmt.Errorf("read events: %w", err)
	}
	return p, nil
}

func (f *eventFile) both(ctx context.Context) (p past, err error) {
	var lines [][]byte
	for _, name := range []string{f.name + eventFileOld, f.name + eventFileEnd} {
		text, err := f.end(name)
		if err != nil {
			return past{}, err
		}
		lines = slices.AppendSeq(lines, bytes.Lines(text))
	}
	p.read(ctx, lines)
	return p, nil
}

// end reads one file, of one that is larger than any of ours its end.
func (f *eventFile) end(name string) ([]byte, error) {
	r, err := regular.Open(f.dir.path(name), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close() // opened for reading
	const most = 2 * maxEventFile
	if info, err := r.Stat(); err != nil {
		return nil, err
	} else if info.Size() > most {
		if _, err := r.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(r, most))
}

// Touch says that the history is in use, so that no other instance forgets it.
func (f *eventFile) Touch(context.Context) error {
	now := clock.WallNow()
	for _, end := range []string{eventFileOld, eventFileEnd} {
		if err := os.Chtimes(f.dir.path(f.name+end), now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sweep removes the histories of instances that are gone: a name that changes with every start would fill the directory.
func (f *eventFile) sweep(now time.Time) error {
	entries, err := os.ReadDir(string(f.dir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		stem, ok := strings.CutSuffix(strings.TrimSuffix(name, ".1"), eventFileEnd)
		if !ok || stem == f.name || !strings.HasPrefix(name, eventFileStart) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || now.Sub(info.ModTime()) < historyTTL {
			continue // an error: somebody else removed it
		}
		if err := os.Remove(f.dir.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
