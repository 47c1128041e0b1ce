package keys

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// Client is what the file says of a client: somebody with one or two keys and one quota for both. A zero setting takes the
// gateway's default.
type Client struct {
	Name              string
	RequestsPerSecond int           // requests to the gateway
	UpstreamPerMinute int           // units of the exchanges' limits, all exchanges together
	MaxAge            time.Duration // the age of a book that it accepts where a request names none
	Streams           int           // connections at once
}

// maxValid is how many valid keys a client has at most: the one in use, and its successor while the bots are moved to it.
const maxValid = 2

// What a setting may be. An upper bound is far above what one gateway serves, and keeps a slip of the finger from being none.
const (
	maxRequests = 100_000
	maxUpstream = 1_000_000
	maxAge      = 24 * time.Hour
	maxStreams  = 100_000
)

// maxClients bounds the section of clients; a client without settings is not in it.
const maxClients = 4096

// clientName is what a name looks like: it is a metric label and a log field.
var clientName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ValidClient tells why a text is not the name of a client. The error does not repeat it: it may be a key.
func ValidClient(name string) error {
	if !clientName.MatchString(name) {
		return errors.New("a client's name has 1 to 32 small letters, digits, - and _, and begins with a letter or digit")
	}
	return notTaken(name)
}

// notTaken refuses the names of those who have no key: in metrics and on the dashboard a client of such a name could not be
// told from them.
func notTaken(name string) error {
	switch name {
	case market.Keyless, "anonymous", "gateway":
		return errors.New("a client cannot be called " + name + ": that is the name of callers without a key, or of the gateway itself")
	}
	return nil
}

// Validate returns everything that is wrong with the settings, at once.
func (c Client) Validate() error {
	return errors.Join(ValidClient(c.Name),
		within("requests_per_second", int64(c.RequestsPerSecond), maxRequests),
		within("upstream_per_minute", int64(c.UpstreamPerMinute), maxUpstream),
		within("max_age_ms", c.MaxAge.Milliseconds(), maxAge.Milliseconds()),
		within("streams", int64(c.Streams), maxStreams))
}

func within(name string, v, most int64) error {
	if v < 0 || v > most {
		return outside(name, v, most)
	}
	return nil
}

func outside(name string, v, most int64) error {
	return fmt.Errorf("%s is %d: write 1 to %d, or leave it out for the default", name, v, most)
}

// clientForm is a client's settings as YAML. A pointer tells a zero that somebody wrote from a default.
type clientForm struct {
	RequestsPerSecond *whole `yaml:"requests_per_second,omitempty"`
	UpstreamPerMinute *whole `yaml:"upstream_per_minute,omitempty"`
	MaxAgeMS          *whole `yaml:"max_age_ms,omitempty"`
	Streams           *whole `yaml:"streams,omitempty"`
}

// whole is a whole number. The library would cut 1.5 to 1.
type whole struct {
	n   int64
	bad bool
}

// UnmarshalYAML implements yaml.BytesUnmarshaler. What is no whole number is told later, with the client's name.
func (w *whole) UnmarshalYAML(text []byte) error {
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	*w = whole{n: n, bad: err != nil}
	return nil
}

// MarshalYAML implements yaml.InterfaceMarshaler.
func (w *whole) MarshalYAML() (any, error) { return w.n, nil }

func (f *clientForm) client(name string) (Client, error) {
	if f == nil {
		f = &clientForm{}
	}
	err := ValidClient(name)
	take := func(field string, v *whole, most int64) int64 {
		switch {
		case v == nil:
			return 0
		case v.bad:
			err = errors.Join(err, fmt.Errorf("%s is no whole number", field))
			return 0
		case v.n < 1 || v.n > most:
			err = errors.Join(err, outside(field, v.n, most))
			return 0
		}
		return v.n
	}
	c := Client{
		Name:              name,
		RequestsPerSecond: int(take("requests_per_second", f.RequestsPerSecond, maxRequests)),
		UpstreamPerMinute: int(take("upstream_per_minute", f.UpstreamPerMinute, maxUpstream)),
		MaxAge:            time.Duration(take("max_age_ms", f.MaxAgeMS, maxAge.Milliseconds())) * time.Millisecond,
		Streams:           int(take("streams", f.Streams, maxStreams)),
	}
	return c, err
}

func formOfClient(c *Client) *clientForm {
	some := func(n int64) *whole {
		if n == 0 {
			return nil
		}
		return &whole{n: n}
	}
	return &clientForm{
		RequestsPerSecond: some(int64(c.RequestsPerSecond)), UpstreamPerMinute: some(int64(c.UpstreamPerMinute)),
		MaxAgeMS: some(c.MaxAge.Milliseconds()), Streams: some(int64(c.Streams)),
	}
}
