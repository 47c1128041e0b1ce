package gobinance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is what `make build` makes.
const program = "../../../bin/gateway"

// gateway is a running demo: a gateway on simulated exchanges that break only when they are told to.
type gateway struct {
	t       *testing.T
	Public  string
	Control string
}

// start runs a demo until the test ends.
func start(t *testing.T) *gateway {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	cmd := exec.Command(program, "demo", "--every", "24h", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ready-file", ready)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "TMPDIR="+dir), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over := false
	t.Cleanup(func() {
		if !over {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
			<-ended
		}
		if t.Failed() {
			t.Logf("the demo said: %s", said.String())
		}
	})
	g := &gateway{t: t}
	for range 600 { // 30 s
		if text, err := os.ReadFile(ready); err == nil {
			if err := json.Unmarshal(text, g); err != nil {
				t.Fatal(err)
			}
			return g
		}
		select {
		case err := <-ended:
			over = true
			t.Fatalf("the demo ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("the demo did not start within 30 s")
	return nil
}

// tell asks the simulated exchanges for something, or tells them.
func (g *gateway) tell(method, path, body string, into any) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, g.Control+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		g.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			g.t.Fatal(err)
		}
	}
}

// book is the simulator's own.
type book struct {
	Time time.Time
	Bids []struct{ Price, Size string }
	Asks []struct{ Price, Size string }
}

// truth is the simulator's book of a symbol with a number.
func (g *gateway) truth(symbol string, number int64, depth int) (b book) {
	g.t.Helper()
	g.tell(http.MethodGet, fmt.Sprintf("/v1/book/binance?symbol=%s&seq=%d&depth=%d", symbol, number, depth), "", &b)
	return b
}
