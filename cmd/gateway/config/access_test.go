package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/config"
)

func TestAccess_saysWhatIsWrong(t *testing.T) {
	f := func(set, want string) {
		t.Helper()
		_, err := load(t, "", nil, []string{set})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", set, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error is %v, want %q in it", set, err, want)
		}
	}
	f("trusted_proxies=10.0.0.7,10.1.0.0/16,fd00::/32,::1", "")
	f("trusted_proxies=proxy.example.com", "is no address or network")
	f("trusted_proxies=0.0.0.0/0", "most of the internet")
	f("trusted_proxies=::/0", "most of the internet")
	f("trusted_proxies=", "is no address or network")
	f("cors_origins=https://desk.example.com,http://127.0.0.1:3000", "")
	f("cors_origins=*", "no origin")
	f("cors_origins=https://*.example.com", "no origin")
	f("cors_origins=https://desk.example.com/", "no origin")
	f("cors_origins=https://Desk.example.com", "no origin")
	f("cors_origins=null", "no origin")
	f("allowed_hosts=gateway,market.example.com,10.0.0.7,::1,a_b", "")
	f("allowed_hosts=*", "[0] is no name of a host")
	f("allowed_hosts=gateway,http://gateway", "[1] is no name of a host")
	f("allowed_hosts=gateway:8080", "no name of a host")
	f("allowed_hosts=.example.com", "no name of a host")
	f("allowed_hosts="+strings.Repeat("a,", 32)+"a", "at most 32")
	f("client_defaults.requests_per_second=0", "1 to 100000")
	f("client_defaults.upstream_per_minute=-1", "1 to 1000000")
}

func TestProxies_anAddressIsItself(t *testing.T) {
	c := config.Default()
	c.TrustedProxies = []string{"10.0.0.7", "::ffff:10.0.0.8", "10.1.2.3/16"}
	got, err := c.Proxies()
	if err != nil || len(got) != 3 || got[0].String() != "10.0.0.7/32" || got[1].String() != "10.0.0.8/32" || got[2].String() != "10.1.0.0/16" {
		t.Errorf("proxies are %v, %v", got, err)
	}
}

func TestCheckExposure_refusesWhatIsUnsafe(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	conf := func(change func(*config.Config)) string {
		c := config.Default()
		c.KeysFile = keys
		change(&c)
		if err := c.CheckExposure(""); err != nil {
			return err.Error()
		}
		return ""
	}
	proxied := func(c *config.Config) { c.TrustedProxies = []string{"127.0.0.1"} }
	if got := conf(proxied); !strings.Contains(got, "no valid client key exists") {
		t.Errorf("a proxy in front and no key: %q", got)
	}
	if got := conf(func(c *config.Config) { proxied(c); c.AllowOpen = true }); got != "" {
		t.Errorf("said explicitly: %q", got)
	}
	keys = keysFile(t, time.Time{}, "market:read")
	if got := conf(proxied); got != "" {
		t.Errorf("a proxy in front and a file of keys: %q", got)
	}
	if err := os.Chmod(keys, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := conf(func(*config.Config) {}); !strings.Contains(got, "chmod 600") {
		t.Errorf("keys that everybody may write: %q", got)
	}
}

func TestAdminScheme(t *testing.T) {
	for addr, want := range map[string]string{"127.0.0.1:8081": "http://", "0.0.0.0:8081": "https://"} {
		c := config.Default()
		c.AdminListen = addr
		if got := c.AdminScheme(); got != "http://" {
			t.Errorf("%s without a certificate: %s", addr, got)
		}
		if c.TLSCertFile = "cert.pem"; c.AdminScheme() != want {
			t.Errorf("%s with one: %s, want %s", addr, c.AdminScheme(), want)
		}
	}
}

// TestHosts are also the names that the gateway has elsewhere in the configuration.
func TestHosts(t *testing.T) {
	c := config.Default()
	c.Listen, c.AdminListen, c.AllowedHosts = "market.internal:8080", ":8081", []string{"gateway"}
	c.ExternalURL = "https://desk.example.com:8081/ui"
	if got := strings.Join(c.Hosts(), " "); got != "desk.example.com gateway market.internal" {
		t.Errorf("hosts are %s", got)
	}
}

// TestExternalURL is where links begin: no secret belongs there, and nothing that would end up behind the path.
func TestExternalURL(t *testing.T) {
	for text, good := range map[string]bool{
		"https://gateway.example.com": true, "http://127.0.0.1:8081/": true, "https://example.com/gateway": true, "": true,
		"gateway.example.com": false, "https://u:p@example.com": false, "https://example.com/?a=1": false, "ftp://example.com": false,
	} {
		if _, err := load(t, "", nil, []string{"external_url=" + text}); (err == nil) != good || err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
