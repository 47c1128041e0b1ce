package fleet

import (
	"os"

	"exchange-gateway/internal/market"
)

// watcher is a keeper that other gateways write to, and that can tell cheaply whether they did.
type watcher interface {
	// News returns what is held if it was written by somebody else since it was last read, nil otherwise.
	News() []market.GateRecord
}

var _ watcher = (*GateFile)(nil)

// News implements watcher: one look at the directory, and a read only if another gateway replaced the file. What cannot
// be read is no news; Load and Save say what is wrong with it.
func (f *GateFile) News() []market.GateRecord {
	info, err := os.Stat(f.path())
	if err != nil {
		return nil
	}
	f.mu.Lock()
	same := f.seen != nil && os.SameFile(f.seen, info) && f.seen.ModTime().Equal(info.ModTime())
	f.mu.Unlock()
	if same {
		return nil
	}
	held, err := f.read()
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = info
	for _, r := range held {
		f.known.add(r)
	}
	return held
}

// look remembers the file as it is now: what it holds is known.
func (f *GateFile) look() {
	info, err := os.Stat(f.path())
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = info
}
