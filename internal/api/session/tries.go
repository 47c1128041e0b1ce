package session

import (
	"sync"
	"time"
)

// TriesPerSecond is how many wrong keys may be tried in a second, by everybody together. A key has 128 bits and cannot be
// guessed; this keeps a guesser from taking the machine's time. There is no count per address: it would have to be bounded,
// and whoever reaches this listener has many.
const TriesPerSecond = 5

// Tries slows down the swapping of wrong keys. The zero value is ready.
type Tries struct {
	mu      sync.Mutex
	started bool
	left    int       // tries that may begin
	since   time.Time // when left was right
}

// Begin takes a try, or tells after how long there is one. A try that was right is given back by [Tries.Right], so right
// keys are never slowed down, unless wrong ones took all tries just now.
func (t *Tries) Begin(now time.Time) (wait time.Duration, ok bool) {
	const every = time.Second / TriesPerSecond
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started {
		t.started, t.left, t.since = true, TriesPerSecond, now
	}
	if n := int(min(now.Sub(t.since)/every, TriesPerSecond)); n > 0 {
		t.left = min(t.left+n, TriesPerSecond)
		t.since = t.since.Add(time.Duration(n) * every)
		if t.left == TriesPerSecond {
			t.since = now
		}
	}
	if t.left == 0 {
		return max(0, every-now.Sub(t.since)), false
	}
	t.left--
	return 0, true
}

// Right gives back a try.
func (t *Tries) Right() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = min(t.left+1, TriesPerSecond)
}
