// Package config is the configuration of the gateway program: its defaults, and how flags, environment variables and a
// YAML file change them, strongest first. It opens nothing but the files that it is told to read.
package config

import (
	"time"

	"exchange-gateway/internal/market"
)

// Config is everything that can be set. Durations are written "300ms", "1h30m".
type Config struct {
	Instance       string        `yaml:"instance"`                 // this gateway's name: in its history, on its dashboard
	Listen         string        `yaml:"listen"`                   // public listener
	AdminListen    string        `yaml:"admin_listen"`             // dashboard, operators' actions, metrics and probes
	TLSCertFile    string        `yaml:"tls_cert_file,omitzero"`   // both or neither of cert and key
	TLSKeyFile     string        `yaml:"tls_key_file,omitzero"`    //
	AllowOpen      bool          `yaml:"allow_open"`               // serve market data beyond loopback without keys
	AllowPlain     bool          `yaml:"allow_plain"`              // serve keys beyond loopback without TLS
	TrustedProxies []string      `yaml:"trusted_proxies,omitzero"` // addresses or networks whose X-Forwarded-For is believed
	CORSOrigins    []string      `yaml:"cors_origins,omitzero"`    // web pages of these origins may read market data
	AllowedHosts   []string      `yaml:"allowed_hosts,omitzero"`   // names by which callers without a key may ask, beside this machine's
	ClientDefaults Quota         `yaml:"client_defaults"`          // of clients for which the keys file says nothing
	ExternalURL    string        `yaml:"external_url,omitzero"`    // the admin listener as people reach it, for links to the dashboard and the runbooks
	StateDir       string        `yaml:"state_dir"`                // gate ends and keys
	KeysFile       string        `yaml:"keys_file"`                // client keys; empty means keys.yaml in StateDir
	Redis          Redis         `yaml:"redis"`                    //
	Log            Log           `yaml:"log"`                      //
	FreshFor       time.Duration `yaml:"fresh_for"`                // up to this age a copy is live
	StaleWait      time.Duration `yaml:"stale_wait"`               // how long a read that holds a copy waits for the exchange
	StaleWarnAfter time.Duration `yaml:"stale_warn_after"`         // from this age on a stale book is warned of in the log
	StaleMaxAge    time.Duration `yaml:"stale_max_age"`            // no copy older than this is served; at most what the policy states
	DefaultMaxAge  time.Duration `yaml:"default_max_age"`          // the bound of callers that give none; unset, at most stale_max_age
	DepthDefault   int           `yaml:"depth_default"`            // levels a side
	DepthMax       int           `yaml:"depth_max"`                // levels a side
	Drain          time.Duration `yaml:"drain"`                    // how long a stop waits for requests in flight
	InFlight       int           `yaml:"in_flight"`                // requests at once; one more is refused
	Webhook        Webhook       `yaml:"webhook,omitzero"`         //
	Exchanges      Exchanges     `yaml:"exchanges"`                //
}

// Quota is what one client may use; its keys share it.
type Quota struct {
	RequestsPerSecond int `yaml:"requests_per_second"` // requests to the gateway; as many at once
	UpstreamPerMinute int `yaml:"upstream_per_minute"` // units of the exchanges' rate limits, all exchanges together
}

// Webhook is where changes of state are told to people, in the form that Slack and its likes take. Without a URL nobody
// is told.
type Webhook struct {
	URL     market.Secret `yaml:"url,omitzero"` // whoever knows it can post
	URLFile string        `yaml:"url_file,omitzero"`
}

// Redis is the optional store that survives restarts. Without an address there is none.
type Redis struct {
	Addrs     []string      `yaml:"addrs,omitzero"`    // one: a server; several: a cluster, or with master the sentinels
	Master    string        `yaml:"master,omitzero"`   // the name that the sentinels know
	Username  string        `yaml:"username,omitzero"` //
	Password  market.Secret `yaml:"password,omitzero"` //
	PassFile  string        `yaml:"password_file,omitzero"`
	DB        int           `yaml:"db,omitzero"`         //
	TLS       bool          `yaml:"tls,omitzero"`        //
	KeyPrefix string        `yaml:"key_prefix,omitzero"` // several gateways in one Redis
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // json, text, auto (text on a terminal)
}

// Exchanges are the exchanges by name.
type Exchanges map[market.ExchangeID]Exchange

// Exchange is one exchange. What is left out has the exchange's own default.
type Exchange struct {
	Enabled      *bool              `yaml:"enabled,omitzero"`
	Hosts        []string           `yaml:"hosts,omitzero"`         // base URLs for public reads, in order of preference
	AccountHosts []string           `yaml:"account_hosts,omitzero"` // base URLs for signed reads
	StreamHosts  []string           `yaml:"stream_hosts,omitzero"`  // base URLs of streams, wss://
	Streams      *bool              `yaml:"streams,omitzero"`       // keep books from the exchange's streams
	Warm         []string           `yaml:"warm,omitzero"`          // pairs that are streamed from the start, "BTC/USDT"
	CAFile       string             `yaml:"ca_file,omitzero"`       // trusted beside the system's, for a venue of one's own
	Region       string             `yaml:"region,omitzero"`
	Maintenance  []string           `yaml:"maintenance,omitzero"`  // windows that are known beforehand: "FROM/UNTIL words", RFC 3339
	BudgetShare  float64            `yaml:"budget_share,omitzero"` // of each of the exchange's rate limits, 0.01 to 1
	Accounts     map[string]Account `yaml:"accounts,omitzero"`
	MarketData   Class              `yaml:"market_data,omitzero"`
	Reference    Class              `yaml:"reference,omitzero"`
	Account      Class              `yaml:"account,omitzero"`
	Stream       Class              `yaml:"stream,omitzero"`
}

// On tells whether the exchange is in use: it is unless it was switched off.
func (e Exchange) On() bool { return e.Enabled == nil || *e.Enabled }

// Streaming tells whether books are kept from the exchange's streams: they are unless that was switched off. Where public
// reads go to hosts of one's own and nothing is said about streams there are none: the exchange's own would be those of
// another venue.
func (e Exchange) Streaming() bool {
	if e.Streams != nil {
		return *e.Streams
	}
	return len(e.Hosts) == 0 || len(e.StreamHosts) > 0
}

// Account is one credential. Each secret may instead be read from a file.
type Account struct {
	Key            market.Secret `yaml:"key,omitzero"`
	KeyFile        string        `yaml:"key_file,omitzero"`
	Secret         market.Secret `yaml:"secret,omitzero"`
	SecretFile     string        `yaml:"secret_file,omitzero"`
	Passphrase     market.Secret `yaml:"passphrase,omitzero"`
	PassphraseFile string        `yaml:"passphrase_file,omitzero"`
	Demo           bool          `yaml:"demo,omitzero"`
}

// Credential is what the adapter gets.
func (a Account) Credential() market.Credential {
	return market.Credential{Key: a.Key, Secret: a.Secret, Passphrase: a.Passphrase, Demo: a.Demo}
}

// Class is how calls of one class are made and when their circuit trips. A zero field has the default of the class.
type Class struct {
	Timeout     time.Duration `yaml:"timeout,omitzero"`     // of one attempt
	Deadline    time.Duration `yaml:"deadline,omitzero"`    // of all attempts together
	Consecutive int           `yaml:"consecutive,omitzero"` // failures in a row that trip
	Rate        float64       `yaml:"rate,omitzero"`        // share of failures that trips, 0.01 to 1
	Window      time.Duration `yaml:"window,omitzero"`      // over which the share is counted
	OpenMin     time.Duration `yaml:"open_min,omitzero"`    // first open time
	OpenMax     time.Duration `yaml:"open_max,omitzero"`    // what it doubles up to
}

// Default is a gateway on loopback with public data of every exchange, no Redis and no accounts.
func Default() Config {
	return Config{
		Listen:         "127.0.0.1:8080",
		AdminListen:    "127.0.0.1:8081",
		Log:            Log{Level: "info", Format: "auto"},
		Redis:          Redis{KeyPrefix: "gw"},
		FreshFor:       time.Second,
		StaleWait:      300 * time.Millisecond,
		ClientDefaults: Quota{RequestsPerSecond: 100, UpstreamPerMinute: 2000},
		StaleWarnAfter: 10 * time.Minute,
		StaleMaxAge:    time.Hour,
		DefaultMaxAge:  time.Hour,
		DepthDefault:   100,
		DepthMax:       1000,
		Drain:          10 * time.Second,
		InFlight:       1000,
		Exchanges:      Exchanges{},
	}
}
