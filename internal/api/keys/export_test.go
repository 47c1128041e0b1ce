package keys

import (
	"crypto/sha256"
	"strconv"
	"time"
)

// What a change makes of the text of a file.

// TextWith is a file with a key more.
func TextWith(text []byte, k Key) ([]byte, error) { return edited(text, adding(k)) }

// TextWithout is a file with a key less.
func TextWithout(text []byte, id string) ([]byte, error) { return edited(text, revoking(id, new(Key))) }

// TextSet is a file with the settings of a client changed.
func TextSet(text []byte, name string, set func(*Client)) ([]byte, error) {
	return edited(text, setting(&Client{Name: name}, set))
}

// FormerKeys are the keys that a file no longer has, by number.
type FormerKeys struct{ f former }

// Add, Has and Held are what a ring does with them.
func (f *FormerKeys) Add(i int, now time.Time) { f.f.add(sha256.Sum256([]byte(strconv.Itoa(i))), now) }

func (f *FormerKeys) Has(i int, now time.Time) bool {
	return f.f.has(sha256.Sum256([]byte(strconv.Itoa(i))), now)
}
func (f *FormerKeys) Held() int { return max(len(f.f.order), len(f.f.since)) }
