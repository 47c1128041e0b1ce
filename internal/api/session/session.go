// Package session lets a browser act as the holder of a key without keeping the key: the key is swapped once for a cookie
// that names it, ends after hours, and is worth nothing when the key is revoked or replaced.
//
// It keeps no list of sessions, so that one survives a restart of the gateway. It does keep a list of those that were ended
// before their time, in memory: a cookie that was copied is worth nothing afterwards, until this process ends. After a
// restart, or at another gateway with the same secret, it works again until its time is over or its key is removed.
package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/clock"
)

// Lasts is how long a session lasts: a shift.
const Lasts = 12 * time.Hour

// SecretSize is how many bytes the gateway's secret needs at least: as many as the hash has, RFC 2104 section 3.
const SecretSize = sha256.Size

// maxValue bounds a cookie's value that is looked at: an id of 32 letters, a time, a number of its own, and a MAC.
const maxValue = 128

// ownLength is how long the text is that tells apart two sessions of one key in one second: 80 bits, or one that was ended
// would end the next too.
const ownLength = 16

// context keeps the gateway's secret from being of use for anything else that is signed with it.
const context = "exchange-gateway session 2"

// Sessions makes and checks the values of cookies. It is safe for concurrent use, and a check does no I/O.
type Sessions struct {
	ring   *keys.Ring
	secret []byte
	ended  ended
}

// New makes sessions of the keys of a ring. A secret of less than SecretSize is an error, none at all is a new one: then
// every session ends with the process.
func New(ring *keys.Ring, secret []byte) (*Sessions, error) {
	if len(secret) == 0 {
		secret = make([]byte, SecretSize)
		_, _ = rand.Read(secret) // never fails, see crypto/rand
	}
	if len(secret) < SecretSize {
		return nil, fmt.Errorf("the secret of sessions has %d bytes; at least %d are needed", len(secret), SecretSize)
	}
	return &Sessions{ring: ring, secret: secret}, nil
}

// Open is the value of a cookie for the holder of a key, and when it ends.
func (s *Sessions) Open(k *keys.Key, now time.Time) (value string, ends time.Time) {
	ends = clock.Wall(now).Add(Lasts).Truncate(time.Second)
	name := k.ID + "." + strconv.FormatInt(ends.Unix(), 10) + "." + rand.Text()[:ownLength]
	return name + "." + s.mac(name, k), ends
}

// End makes a session worth nothing. A value that is worth nothing already changes nothing.
func (s *Sessions) End(value string, now time.Time) {
	if _, ends, ok := s.Check(value, now); ok {
		s.ended.add(value, ends, now)
	}
}

// Check is the key that a cookie stands for, and when that ends; false if the cookie is not one of ours, its time is over,
// it was ended before, or its key is gone or another one by now.
func (s *Sessions) Check(value string, now time.Time) (k *keys.Key, ends time.Time, ok bool) {
	if k, ends, ok = s.read(value, now); !ok || s.ended.has(value) {
		return nil, time.Time{}, false
	}
	return k, ends, true
}

// read is Check without regard to what was ended. The time it takes tells nothing about what is wrong.
func (s *Sessions) read(value string, now time.Time) (k *keys.Key, ends time.Time, ok bool) {
	if len(value) > maxValue {
		return nil, time.Time{}, false
	}
	last := strings.LastIndexByte(value, '.')
	if last < 0 {
		return nil, time.Time{}, false
	}
	id, rest, _ := strings.Cut(value[:last], ".")
	end, _, three := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(end, 10, 64)
	k, known := s.ring.Find(id)
	if !known {
		k = &keys.Key{}
	}
	same := hmac.Equal([]byte(value[last+1:]), []byte(s.mac(value[:last], k))) // as text: a session has one alone
	ends = time.Unix(seconds, 0)
	if !three || err != nil || !known || !same || !clock.Wall(now).Before(ends) {
		return nil, time.Time{}, false
	}
	return k, ends, true
}

// mac covers the key's hash too: with another secret under the same id the session is over.
func (s *Sessions) mac(name string, k *keys.Key) string {
	m := hmac.New(sha256.New, s.secret)
	m.Write([]byte(context + "\x00" + name + "\x00" + k.Hash()))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}
