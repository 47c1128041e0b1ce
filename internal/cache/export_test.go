package cache

import "time"

// What tests need from the inside: the codecs of outside bytes, and a store over a Redis that is a fake.
var (
	EncodeBook     = encodeBook
	DecodeBook     = decodeBook
	EncodeListings = encodeListings
	DecodeListings = decodeListings
	NewWithRemote  = newStore
)

// Patient makes r wait longer than a gateway may, for tests that are about what it does and not about how long it takes.
func Patient(r *Redis) *Redis {
	r.timeout = 10 * time.Second
	return r
}
