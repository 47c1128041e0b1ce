package config

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
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

// CheckExposure refuses to open the gateway to a network by accident. It is apart from Load because making the first key
// must work before there is one.
func (c *Config) CheckExposure() error {
	var p problems
	p.when(!Loopback(c.AdminListen) && !c.AllowOpen, "admin_listen",
		"%s can be reached from other machines and asks for no key: bind it to 127.0.0.1, or say allow_open: true",
		c.AdminListen)
	info, err := os.Stat(c.KeysFile)
	none := errors.Is(err, fs.ErrNotExist) // one that cannot be read is there: nothing is open, every key is refused
	p.when(err == nil && info.Mode().Perm()&0o022 != 0, "keys_file",
		"%s can be written by others on this machine, who could add a key of their own: chmod 600 it", c.KeysFile)
	if Loopback(c.Listen) {
		p.when(none && len(c.TrustedProxies) > 0 && !c.AllowOpen, "trusted_proxies",
			"lets others in through a proxy, and no client key exists: make one with 'gateway key new', or say allow_open: true")
		return errors.Join(p.errs...)
	}
	p.when(none && !c.AllowOpen, "listen",
		"%s can be reached from other machines and no client key exists: make one with 'gateway key new', or say allow_open: true",
		c.Listen)
	p.when(!none && c.TLSCertFile == "" && !c.AllowPlain, "listen",
		"%s would send client keys in the clear: set tls_cert_file and tls_key_file, or say allow_plain: true if something in front of it ends TLS",
		c.Listen)
	return errors.Join(p.errs...)
}

// CheckTLS refuses files that are no certificate and its key. It is apart from Load because not every command may read
// them, or needs to.
func (c *Config) CheckTLS() error {
	var p problems
	if c.TLSCertFile != "" && c.TLSKeyFile != "" {
		_, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
		p.when(err != nil, "tls_cert_file", "and tls_key_file are no certificate and its key in PEM: %v", err)
	}
	return errors.Join(p.errs...)
}
