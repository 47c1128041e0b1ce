package config_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"exchange-gateway/cmd/gateway/config"
)

// filesOf are all settings that name a file, in a configuration file.
const filesOf = `state_dir: state
keys_file: keys.yaml
tls_cert_file: tls/cert.pem
tls_key_file: tls/key.pem
redis: {password_file: redis_password}
webhook: {url_file: webhook_url}
exchanges:
  okx:
    ca_file: ca.pem
    accounts:
      main: {key_file: okx/key, secret_file: okx/secret, passphrase_file: okx/passphrase}
`

// named are the files of filesOf, with what is in them.
func named() map[string]string {
	return map[string]string{
		"redis_password": "p", "webhook_url": "https://hooks.example.com/x", "okx/key": "k", "okx/secret": "s", "okx/passphrase": "w",
		"state/x": "", "keys.yaml": "", "tls/cert.pem": "", "tls/key.pem": "", "ca.pem": "",
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoad_filesAreBesideTheConfiguration: wherever the program is started, a name in the file means the same file. It meant
// one of the working directory, so that a service manager, a shell and a container each found another one.
func TestLoad_filesAreBesideTheConfiguration(t *testing.T) {
	etc, away := t.TempDir(), t.TempDir()
	put(t, etc, named())
	put(t, etc, map[string]string{"gateway.yaml": filesOf})
	put(t, away, map[string]string{"okx/key": "another"}) // what lies beside the configuration is meant
	t.Chdir(away)
	var warned []config.Warning
	c, err := config.Load(config.Sources{File: filepath.Join(etc, "gateway.yaml"), Known: known, Warn: func(w config.Warning) { warned = append(warned, w) }})
	if err != nil {
		t.Fatal(err)
	}
	okx := c.Exchanges["okx"]
	if a := okx.Accounts["main"]; a.Key.Reveal() != "k" || a.Secret.Reveal() != "s" || a.Passphrase.Reveal() != "w" || c.Redis.Password.Reveal() != "p" {
		t.Errorf("secrets of other files: %q", a.Key.Reveal())
	}
	for path, want := range map[string]string{
		c.StateDir: "state", c.KeysFile: "keys.yaml", c.TLSCertFile: "tls/cert.pem", c.TLSKeyFile: "tls/key.pem", okx.CAFile: "ca.pem",
	} {
		if path != filepath.Join(etc, want) {
			t.Errorf("%s is %s", want, path)
		}
	}
	if len(warned) > 0 {
		t.Errorf("warned of %v", warned)
	}
}

// TestLoad_filesOfTheWorkingDirectoryForARelease: a configuration that relied on where the program is started works on, and
// each file is named with the place where it has to be.
func TestLoad_filesOfTheWorkingDirectoryForARelease(t *testing.T) {
	etc, cwd := t.TempDir(), t.TempDir()
	put(t, etc, map[string]string{"gateway.yaml": filesOf})
	put(t, cwd, named())
	t.Chdir(cwd)
	var warned []config.Warning
	c, err := config.Load(config.Sources{File: filepath.Join(etc, "gateway.yaml"), Known: known, Warn: func(w config.Warning) { warned = append(warned, w) }})
	if err != nil {
		t.Fatal(err)
	}
	if c.Exchanges["okx"].Accounts["main"].Key.Reveal() != "k" || c.TLSCertFile != "tls/cert.pem" || len(warned) != 10 {
		t.Errorf("%s, %d warnings: %v", c.TLSCertFile, len(warned), warned)
	}
	for _, w := range warned {
		text := w.String()
		if !strings.Contains(text, w.Setting+": ") || !strings.Contains(text, cwd) || !strings.Contains(text, etc) {
			t.Errorf("warned: %s", text)
		}
	}
	// Whoever gives a name in the environment or as a flag means it as the shell does.
	c, err = config.Load(config.Sources{File: filepath.Join(etc, "gateway.yaml"), Known: known, Set: []string{"tls_cert_file=a", "tls_key_file=b", "keys_file=c"}})
	if err != nil || c.TLSCertFile != "a" || c.KeysFile != "c" {
		t.Errorf("%s, %s, %v", c.TLSCertFile, c.KeysFile, err)
	}
}

// TestLoad_aFileThatIsToBeMade is made beside the configuration.
func TestLoad_aFileThatIsToBeMade(t *testing.T) {
	etc := t.TempDir()
	put(t, etc, map[string]string{"gateway.yaml": "state_dir: state\n"})
	t.Chdir(t.TempDir())
	c, err := config.Load(config.Sources{File: filepath.Join(etc, "gateway.yaml"), Known: known})
	if err != nil || c.StateDir != filepath.Join(etc, "state") || c.KeysFile != filepath.Join(etc, "state", "keys.yaml") {
		t.Errorf("%s, %s, %v", c.StateDir, c.KeysFile, err)
	}
}

func utf16Of(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// TestLoad_secretsInAnEditorsEncoding: a byte order mark or UTF-16 became part of the secret, which the exchange refused.
func TestLoad_secretsInAnEditorsEncoding(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"bom":             {"\ufefffake-secret\n", "begins with a byte order mark"},
		"little-endian":   {utf16Of(binary.LittleEndian, "\ufefffake-secret"), "is UTF-16"},
		"big-endian":      {utf16Of(binary.BigEndian, "\ufefffake-secret"), "is UTF-16"},
		"without-a-mark":  {utf16Of(binary.LittleEndian, "fake-secret"), "is UTF-16"},
		"without-a-mark2": {utf16Of(binary.BigEndian, "fake-secret"), "is UTF-16"},
		"binary":          {"fake\x00secret", "zero bytes"},
	} {
		put(t, dir, map[string]string{name: c.text})
		path := filepath.Join(dir, name)
		account := []string{"exchanges.okx.accounts.main.key=k", "exchanges.okx.accounts.main.secret_file=" + path}
		for source, load := range map[string]func() error{
			"a flag": func() error { _, err := load(t, "", nil, account); return err },
			"the file": func() error {
				_, err := load(t, "exchanges: {okx: {accounts: {main: {key: k, secret_file: '"+path+"'}}}}", nil, nil)
				return err
			},
			"the environment": func() error {
				_, err := load(t, "", []string{"GATEWAY_REDIS_PASSWORD_FILE=" + path}, nil)
				return err
			},
			"a variable that reads it": func() error {
				_, err := load(t, "", []string{"GATEWAY_EXCHANGES_OKX_REGION_FILE=" + path}, nil)
				return err
			},
		} {
			err := load()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "fake") {
				t.Errorf("%s, from %s: %v, want %q", name, source, err, c.want)
			}
		}
	}
	put(t, dir, map[string]string{"config": utf16Of(binary.LittleEndian, "\ufefflisten: 127.0.0.1:1\n")})
	if _, err := config.Load(config.Sources{File: filepath.Join(dir, "config"), Known: known}); err == nil || !strings.Contains(err.Error(), "is UTF-16") {
		t.Errorf("the configuration in UTF-16: %v", err)
	}
	pem := filepath.Join(dir, "bom")
	if _, err := load(t, "", nil, []string{"tls_cert_file=" + pem, "tls_key_file=" + pem}); err != nil {
		t.Fatal(err)
	}
	conf := config.Config{TLSCertFile: pem, TLSKeyFile: pem}
	if err := conf.CheckTLS(); err == nil || !strings.Contains(err.Error(), "byte order mark") {
		t.Errorf("a certificate with a byte order mark: %v", err)
	}
}
