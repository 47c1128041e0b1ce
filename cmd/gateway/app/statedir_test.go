//go:build unix

package app_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// TestNew_stateDirHoldsAnything: whatever lies in the place of a file that the gateway keeps, it starts at once, answers, and says
// what does not work.
func TestNew_stateDirHoldsAnything(t *testing.T) {
	things := map[string]func(path string) error{
		"fifo":         func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":    func(path string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) },
		"symlink loop": func(path string) error { return os.Symlink(path, path) },
		"1 GB": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30))
		},
		"socket": func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	}
	files := map[string]string{
		"gates.json": "state_dir", "gates.lock": "state_dir", "overrides.json": "state_dir", "operations.lock": "state_dir", "events-here.jsonl": "state_dir",
		"session.key": "state_dir", "keys.yaml": "keys_file", "keys-used.json": "", "gates.json.tmp": "", "events-here.jsonl.1": "state_dir",
	}
	for thing, make := range things {
		for file, word := range files {
			t.Run(thing+" "+file, func(t *testing.T) {
				dir, err := os.MkdirTemp("", "gw") // a socket's path is short
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				if err := make(filepath.Join(dir, file)); err != nil {
					t.Skip(err)
				}
				conf := config.Default()
				conf.StateDir, conf.KeysFile, conf.Instance = dir, filepath.Join(dir, "keys.yaml"), "here"
				conf.Exchanges = config.Exchanges{"okx": {}}
				began := time.Now()
				a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return refusing{} }})
				if err != nil {
					t.Fatal(err)
				}
				a.Start(t.Context())
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the start took %v", took)
				}
				w := httptest.NewRecorder()
				a.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
				large := thing == "1 GB" // is set aside, cut or emptied, where it is no file of keys
				if w.Code != http.StatusOK || word != "" && !large && !strings.Contains(w.Body.String(), `"`+word+`"`) {
					t.Errorf("readyz: %d %s, want %s", w.Code, w.Body, word)
				}
				if err := a.Close(t.Context()); err != nil {
					t.Log(err)
				}
			})
		}
	}
}
