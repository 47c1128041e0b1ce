package fleet

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	// maxInForce bounds the overrides that are in force: three exchanges have a dozen classes and a few thousand pairs, and
	// who withholds a thousand pairs one by one means the exchange.
	maxInForce = 1000
	// maxMarks bounds what is remembered, those that are over included. Beyond it the oldest of these are given up.
	maxMarks = 2 * maxInForce
	// memory is how long an override is remembered past its end: so long may an older copy of it lie in a place that could
	// not be reached when it was released or shortened, since none lasts longer than a day (ops.MaxFor).
	memory = 24 * time.Hour
	// maxAhead bounds what a stamp from a broken clock can do.
	maxAhead = 7 * 24 * time.Hour
	// maxWords bounds an actor and a reason in bytes: 200 characters of four bytes are permitted.
	maxWords = 1 << 10
)

var (
	errOverrides = errors.New("not an override")
	errTooMany   = fmt.Errorf("%d overrides are in force, and more are not kept: release some, or withhold the whole exchange",
		maxInForce)
)

// mark is an override with what makes copies of it comparable, in whatever order they are met.
type mark struct {
	market.Override
	Version  version
	Released bool      // by an operator, as opposed to ended by itself
	Last     time.Time // the latest end that any version of it had: until then an older copy could still be believed
}

// version orders what was said about one thing: microseconds of the clock of who said it, at least one later than the
// version that it takes the place of, then eight random digits, so that two gateways never mean two things by one version.
// It is compared as text, here and in Redis.
type version string

var versionRule = regexp.MustCompile(`^[0-9]{16}\.[0-9a-f]{8}$`)

// next is a version for now that is later than old, even if another machine's clock made old.
func next(old version, now time.Time) version {
	stamp := now.UnixMicro()
	if digits, _, ok := strings.Cut(string(old), "."); ok {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			stamp = max(stamp, n+1)
		}
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return version(fmt.Sprintf("%016d.%s", stamp, hex.EncodeToString(b[:])))
}

// stampOf is how a version begins that is made at an instant.
func stampOf(t time.Time) string { return fmt.Sprintf("%016d", t.UnixMicro()) }

// markKey names what an override is about.
type markKey struct {
	kind     market.OverrideKind
	exchange market.ExchangeID
	class    market.Class
	pair     market.Pair
}

func (m *mark) key() markKey { return markKey{m.Kind, m.Exchange, m.Class, m.Pair} }

func (m *mark) inForce(now time.Time) bool { return !m.Released && m.End().After(now) && known(m.Kind) }

// forgetAt is when nothing about it matters any more.
func (m *mark) forgetAt() time.Time { return m.Last.Add(memory) }

// known tells whether this gateway knows what the kind means. One of a newer gateway's is kept for it, and not believed.
func known(k market.OverrideKind) bool {
	return k == market.OverrideIsolate || k == market.OverrideWithhold
}

// check refuses what cannot be true, or cannot be written down.
func (m *mark) check(now time.Time) error {
	switch {
	case m.Kind == "" || m.Exchange == "":
		return fmt.Errorf("%w: no kind or no exchange", errOverrides)
	case !word(string(m.Kind)) || !word(string(m.Exchange)) || !word(string(m.Class)):
		return fmt.Errorf("%w: a name that is none", errOverrides)
	case len(m.Actor) > maxWords || len(m.Reason) > maxWords:
		return fmt.Errorf("%w: actor or reason over %d bytes", errOverrides, maxWords)
	case !symbolic(m.Pair):
		return fmt.Errorf("%w: a pair that is none", errOverrides)
	case !versionRule.MatchString(string(m.Version)) || string(m.Version[:16]) > stampOf(now.Add(maxAhead)):
		return fmt.Errorf("%w: no version", errOverrides) // one from the far future could never be replaced
	case !written(m.Since) || !written(m.Until) || !written(m.Last):
		return fmt.Errorf("%w: a time that is none", errOverrides)
	case m.Until.After(now.Add(maxAhead)) || m.Last.After(now.Add(maxAhead)):
		return fmt.Errorf("%w: it ends in more than %v", errOverrides, maxAhead)
	}
	return nil
}

// symbolic tells whether a pair is what is read back from its text.
func symbolic(p market.Pair) bool {
	q, err := pairOf(symbolOf(p))
	return err == nil && p == q
}

// word tells whether text may stand in a name: it has no separator of Redis' fields.
func word(text string) bool {
	return len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '|' || r > '~' })
}

// join makes one of two copies, in either order: the later version, and the latest end that either knows of. Two copies of
// one version differ by what the clocks on their ways added, so the later end is the true one: an isolation does not end
// early.
func join(a, b mark) mark {
	last := a.Last
	if b.Last.After(last) {
		last = b.Last
	}
	switch c := cmp.Compare(a.Version, b.Version); {
	case c < 0, c == 0 && b.Until.After(a.Until):
		a = b
	}
	a.Last = last
	return a
}

// marks are overrides by what they are about.
type marks map[markKey]mark

// add joins a copy, and tells whether it was a later version.
func (ms marks) add(m mark) (newer bool) {
	old, ok := ms[m.key()]
	if ok {
		newer = m.Version > old.Version
		m = join(old, m)
	} else {
		newer = true
	}
	ms[m.key()] = m
	return newer
}

// prune forgets what does not matter any more, and beyond maxMarks what is over and would be forgotten first. What is in
// force is never given up.
func (ms marks) prune(now time.Time) {
	wall := clock.Wall(now)
	for k, m := range ms {
		if !m.forgetAt().After(wall) {
			delete(ms, k)
		}
	}
	if len(ms) <= maxMarks {
		return
	}
	over := slices.DeleteFunc(ms.list(), func(m mark) bool { return m.inForce(now) })
	slices.SortStableFunc(over, func(a, b mark) int { return a.Last.Compare(b.Last) })
	for _, m := range over[:min(len(over), len(ms)-maxMarks)] {
		delete(ms, m.key())
	}
}

// list is in the order of names, so that a file of the same overrides is the same file.
func (ms marks) list() []mark {
	list := make([]mark, 0, len(ms))
	for _, m := range ms {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mark) int {
		return cmp.Or(
			cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Pair.Base, b.Pair.Base), cmp.Compare(a.Pair.Quote, b.Pair.Quote),
		)
	})
	return list
}
