package config

import (
	"errors"
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
	if Loopback(c.Listen) {
		return errors.Join(p.errs...)
	}
	_, err := os.Stat(c.KeysFile)
	p.when(err != nil && !c.AllowOpen, "listen",
		"%s can be reached from other machines and no client key exists: make one with 'gateway key new', or say allow_open: true",
		c.Listen)
	p.when(err == nil && c.TLSCertFile == "" && !c.AllowPlain, "listen",
		"%s would send client keys in the clear: set tls_cert_file and tls_key_file, or say allow_plain: true if something in front of it ends TLS",
		c.Listen)
	return errors.Join(p.errs...)
}
