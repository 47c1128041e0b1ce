package fleet

import "exchange-gateway/internal/market"

// watcher is a keeper that other gateways write to, and that can tell cheaply whether they did.
type watcher interface {
	// News returns what is held if it was written by somebody else since it was last read, nil otherwise.
	News() []market.GateRecord
}

var _ watcher = (*GateFile)(nil)

// News implements watcher: one look at the directory, and a read only if another gateway replaced the file. What cannot
// be read is no news; Load and Save say what is wrong with it.
func (f *GateFile) News() []market.GateRecord {
	now := f.dir.look(gateFileName)
	f.mu.Lock()
	seen := f.seen
	f.mu.Unlock()
	if now == (stamp{}) || seen.same(now) {
		return nil
	}
	held, err := f.read()
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = now
	for _, r := range held {
		f.known.add(r)
	}
	return held
}
