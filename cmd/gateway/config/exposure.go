package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/clock"
)

// Loopback tells whether an address can be reached from this machine alone.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// AdminTLS tells whether the admin listener has the certificate: beyond loopback, where there is one. On loopback nobody listens
// in, and scrapers and scripts stay simple.
func (c *Config) AdminTLS() bool { return c.TLSCertFile != "" && !Loopback(c.AdminListen) }

// AdminScheme is how a URL of the admin listener begins.
func (c *Config) AdminScheme() string {
	if c.AdminTLS() {
		return "https://"
	}
	return "http://"
}

// CheckExposure refuses to open the gateway to a network by accident. It is apart from Load because making the first key
// must work before there is one.
// program is how the gateway is called in a shell, "" for gateway.
func (c *Config) CheckExposure(program string) error {
	newKey := cmp.Or(program, "gateway") + " key new"
	var p problems
	held := c.held()
	info, err := os.Stat(c.KeysFile)
	p.when(err == nil && info.Mode().Perm()&0o022 != 0, "keys_file",
		"%s can be written by others on this machine, who could add a key of their own: chmod 600 it", c.KeysFile)
	if !Loopback(c.AdminListen) {
		p.when(!held.ops && !c.AllowOpen, "admin_listen",
			"%s can be reached from other machines and no key with ops:read exists: make one with '%s --scope ops:read', bind it to 127.0.0.1, or say allow_open: true, and whoever reaches it reads all that it shows",
			c.AdminListen, newKey)
		p.plain(c, held.ops, "admin_listen", c.AdminListen)
	}
	if !Loopback(c.Listen) {
		p.when(!held.any && !c.AllowOpen, "listen",
			"%s can be reached from other machines and no valid client key exists: make one with '%s', or say allow_open: true",
			c.Listen, newKey)
		p.plain(c, held.any, "listen", c.Listen)
	} else {
		p.when(!held.any && len(c.TrustedProxies) > 0 && !c.AllowOpen, "trusted_proxies",
			"lets others in through a proxy, and no valid client key exists: make one with '%s', or say allow_open: true", newKey)
	}
	return errors.Join(p.errs...)
}

// plain refuses keys on a network in the clear.
func (p *problems) plain(c *Config, keys bool, name, addr string) {
	p.when(keys && c.TLSCertFile == "" && !c.AllowPlain, name,
		"%s would send keys in the clear: set tls_cert_file and tls_key_file, or say allow_plain: true if something in front of it ends TLS", addr)
}

// heldKeys is what the keys file has.
type heldKeys struct{ any, ops bool }

// held reads the keys file. One that cannot be read counts as one with every key: nothing is open then, and every key is
// refused until it can be.
func (c *Config) held() (h heldKeys) {
	now := clock.WallNow()
	file, err := keys.Load(c.KeysFile, now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return heldKeys{}
	case err != nil:
		return heldKeys{any: true, ops: true}
	}
	for i := range file.Keys {
		k := &file.Keys[i]
		if !k.Expired(now) {
			h.any, h.ops = true, h.ops || k.Scopes.Has(keys.OpsRead)
		}
	}
	return h
}

// CheckTLS refuses files that are no certificate and its key, or not one that clients take now. It is apart from Load because
// not every command may read them, or needs to.
func (c *Config) CheckTLS() error {
	if c.TLSCertFile == "" || c.TLSKeyFile == "" {
		return nil
	}
	_, err := Certificate(c.TLSCertFile, c.TLSKeyFile, clock.WallNow())
	return err
}

// Certificate reads a certificate and its key, and refuses what clients would refuse, and a key that is not safe.
func Certificate(certFile, keyFile string, now time.Time) (*tls.Certificate, error) {
	var p problems
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		p.when(true, "tls_cert_file", "and tls_key_file are no certificate and its key in PEM: %v",
			cmp.Or(PEM(certFile), PEM(keyFile), err))
	} else {
		p.when(now.After(pair.Leaf.NotAfter), "tls_cert_file", "ended at %s: clients refuse it", day(pair.Leaf.NotAfter))
		p.when(now.Before(pair.Leaf.NotBefore), "tls_cert_file", "begins at %s: clients refuse it until then", day(pair.Leaf.NotBefore))
	}
	info, err := os.Stat(keyFile)
	p.when(err == nil && info.Mode().Perm()&0o022 != 0, "tls_key_file", "can be written by others on this machine: chmod 600 it")
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return &pair, nil
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
