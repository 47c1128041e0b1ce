package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// A key is `gw_<id>_<secret>`. The prefix makes leaked keys findable, the id names the key in logs and in the file, and
// the secret has at least 128 bits, so that one SHA-256 is enough at rest: there is nothing to guess from.
const (
	prefix    = "gw_"
	idLength  = 8
	minID     = 4
	maxID     = 32
	minSecret = 20
	maxSecret = 128
	maxText   = len(prefix) + maxID + 1 + maxSecret
)

// Key is a client's key as it is kept: without its secret.
type Key struct {
	ID      string
	Scopes  Scopes
	Note    string    // whose key it is, in the operator's words
	Created time.Time // zero if the file does not say
	Client  string    // the name of the client that it belongs to; the key's own id where nobody named one
	Expires time.Time // from then on it is refused; zero is never

	hash [sha256.Size]byte
	life *life // nil unless a ring holds it
}

// Expired tells whether the key's time is over.
func (k *Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// New makes a key with a fresh secret, of a client of its own and without end: set Client and Expires before it is kept. The
// returned text is the only copy of the secret.
func New(scopes Scopes, note string, now time.Time) (Key, market.Secret, error) {
	if scopes.IsZero() {
		return Key{}, market.Secret{}, errors.New("a key needs at least one scope")
	}
	if err := validNote(note); err != nil {
		return Key{}, market.Secret{}, err
	}
	id := strings.ToLower(rand.Text()[:idLength])
	text := prefix + id + "_" + strings.ToLower(rand.Text())
	k := Key{
		ID: id, Scopes: scopes, Note: note, Client: id, Created: now.UTC().Truncate(time.Second),
		hash: sha256.Sum256([]byte(text)),
	}
	return k, market.NewSecret(text), nil
}

// Hash is the SHA-256 of the key's whole text in hex, as the file holds it.
func (k *Key) Hash() string { return hex.EncodeToString(k.hash[:]) }

func parseHash(s string) (h [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, errors.New("hash is not the SHA-256 of a key in hex (64 digits)")
	}
	return [sha256.Size]byte(b), nil
}

// split finds the id in a key's text. It is false for text that cannot be a key.
func split(text string) (id string, ok bool) {
	if len(text) > maxText {
		return "", false
	}
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", false
	}
	id, secret, ok := strings.Cut(rest, "_")
	return id, ok && validID(id) && len(secret) >= minSecret && len(secret) <= maxSecret && alphanumeric(secret)
}

func validID(id string) bool { return len(id) >= minID && len(id) <= maxID && alphanumeric(id) }

func alphanumeric(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return true
}

const maxNote = 200

func validNote(s string) error {
	if len(s) > maxNote {
		return fmt.Errorf("note is longer than %d bytes", maxNote)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("note has a control character")
	}
	return nil
}
