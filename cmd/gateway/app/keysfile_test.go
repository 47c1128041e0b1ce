package app_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// TestNew_keysFileCannotBeRead: market data goes on, and what does not work is said.
func TestNew_keysFileCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("keys: nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*config.Config){
		"broken":                   func(c *config.Config) { c.StateDir, c.KeysFile = t.TempDir(), file },
		"state_dir is a file":      func(c *config.Config) { c.StateDir, c.KeysFile = file, file+"/keys.yaml" },
		"there is no place for it": func(c *config.Config) { c.StateDir, c.KeysFile = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			conf := config.Default()
			conf.Exchanges = config.Exchanges{"okx": {}}
			change(&conf)
			a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return silent{} }})
			if err != nil {
				t.Fatal(err)
			}
			a.Start(t.Context())
			defer func() {
				if err := a.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			if app.CheckKeys(conf, nil) == nil {
				t.Error("a check of the configuration says nothing")
			}
			w := httptest.NewRecorder()
			a.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"keys_file"`) {
				t.Errorf("readyz: %d %s", w.Code, w.Body)
			}
			if bad := name != "broken"; strings.Contains(w.Body.String(), `"state_dir"`) != bad {
				t.Errorf("readyz: %s, want state_dir: %v", w.Body, bad)
			}
		})
	}
	if _, err := os.Stat("gates.json"); err == nil {
		t.Error("without a state directory something was written to the working directory")
	}
}
