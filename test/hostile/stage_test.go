package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// stage is a gateway in front of simulated exchanges, each in its own process.
type stage struct {
	t             *testing.T
	gateway, sim  *process
	public, admin string // host:port
	dir, state    string
	client        *http.Client
}

// warm are the pairs that are streamed from the start.
var warm = map[string]string{"binance": "BTC/USDT", "okx": "BTC/USDT", "coinbase": "BTC/USD"}

// newStage is a stage on which nothing runs yet: keys are made before.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		t: t, dir: t.TempDir(),
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	s.state = filepath.Join(s.dir, "state")
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// raise starts everything and waits until the warm books are live.
func (s *stage) raise(t *testing.T) {
	t.Helper()
	ready := filepath.Join(s.dir, "ready.json")
	sim := launch(t, "exchangesim", nil, nil, nil, "--binance=127.0.0.1:0", "--okx=127.0.0.1:0", "--coinbase=127.0.0.1:0",
		"--control=127.0.0.1:0", "--ready-file="+ready)
	var urls map[string]string
	eventually(t, 20*time.Second, "the simulated exchanges listen: "+sim.log.String(), func() bool {
		text, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(text, &urls) == nil
	})
	s.sim = sim
	// GOGC as everywhere but in `serve`: what was given back is seen after fewer collections.
	env := []string{"GOGC=100"}
	args := []string{
		"serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json",
		"--state-dir=" + s.state,
	}
	for id, pair := range warm {
		at := "GATEWAY_EXCHANGES_" + strings.ToUpper(id) + "_"
		env = append(env, at+"HOSTS="+urls[id], at+"ACCOUNT_HOSTS="+urls[id],
			at+"STREAM_HOSTS=ws"+strings.TrimPrefix(urls[id], "http"))
		args = append(args, "--set", "exchanges."+id+".warm="+pair)
	}
	c := exchangesim.ExampleCredentials()
	okx := c[slices.IndexFunc(c, func(c exchangesim.Credential) bool { return c.Name == "okx" })]
	at := "GATEWAY_EXCHANGES_OKX_ACCOUNTS_MAIN_"
	env = append(env, at+"KEY="+okx.Key, at+"SECRET="+okx.Secret, at+"PASSPHRASE="+okx.Passphrase)
	s.gateway = launch(t, "gateway", env, nil, nil, args...)
	eventually(t, 20*time.Second, "the gateway listens", s.listens)
	eventually(t, 20*time.Second, "warm books are live", func() bool {
		for id, pair := range warm {
			if a := s.get(s.public, bookPath(id, pair), ""); a.status != http.StatusOK || !bytes.Contains(a.body,
				[]byte(`"source":"stream"`)) {
				return false
			}
		}
		return true
	})
}

func (s *stage) listens() bool {
	select {
	case <-s.gateway.done:
		s.t.Fatalf("the gateway ended: %s", s.gateway.log.String())
	default:
	}
	for line := range strings.Lines(s.gateway.log.String()) {
		var at struct{ Msg, Public, Admin string }
		if json.Unmarshal([]byte(line), &at) == nil && at.Msg == "listening" {
			s.public, s.admin = at.Public, at.Admin
			return true
		}
	}
	return false
}

func bookPath(exchange, pair string) string {
	return "/v1/exchanges/" + exchange + "/orderbook?symbol=" + pair + "&depth=5"
}

type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
	err    error
}

// get asks with a key, if there is one.
func (s *stage) get(host, path, key string) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return answer{err: err}
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	start := time.Now()
	res, err := s.client.Do(req)
	if err != nil {
		return answer{err: err, took: time.Since(start)}
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	a.body, a.err = io.ReadAll(res.Body)
	a.took = time.Since(start)
	return a
}

// usage is what the gateway holds.
type usage struct {
	goroutines, files, collections int
	heap, resident                 int // bytes
}

// metrics are the gateway's own, by series.
func (s *stage) metrics() map[string]string {
	s.t.Helper()
	a := s.get(s.admin, "/metrics", "")
	if a.status != http.StatusOK {
		s.t.Fatalf("metrics: %d %v", a.status, a.err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(a.body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = value
	}
	return all
}

// usage reads the gateway's own metrics.
func (s *stage) usage() (u usage) {
	s.t.Helper()
	for name, value := range s.metrics() {
		into := map[string]*int{
			"go_goroutines": &u.goroutines, "process_open_fds": &u.files, "go_gc_duration_seconds_count": &u.collections,
			"go_memstats_heap_alloc_bytes": &u.heap, "process_resident_memory_bytes": &u.resident,
		}[name]
		if into == nil {
			continue
		}
		n, err := strconv.ParseFloat(value, 64) // Prometheus writes 1.6e+07
		if err != nil {
			s.t.Fatalf("metrics: %s %s", name, value)
		}
		*into = int(n)
	}
	if u.goroutines == 0 || u.files == 0 || u.heap == 0 || u.resident == 0 {
		s.t.Fatalf("metrics lack %+v", u)
	}
	return u
}

// settled is usage with what lives in the heap: the least that is seen while collections pass. Each look allocates, so that
// they come.
func (s *stage) settled(collections int) usage {
	s.t.Helper()
	first := s.usage()
	least := first
	for end := time.Now().Add(20 * time.Second); least.collections < first.collections+collections && time.Now().Before(end); {
		u := s.usage()
		u.heap = min(u.heap, least.heap)
		least = u
	}
	return least
}

// newKey makes a key as an operator does, for a client of that name.
func (s *stage) newKey(t *testing.T, client string) string {
	t.Helper()
	key := strings.TrimSpace(s.operate(t, "key", "new", "--scope=market:read", "--scope=account:read", "--client="+client))
	if !strings.HasPrefix(key, "gw_") {
		t.Fatalf("key new: %q", key)
	}
	return key
}

// operate runs a command of the gateway and gives what it writes.
func (s *stage) operate(t *testing.T, args ...string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // it is only read below
	p := launch(t, "gateway", nil, out, nil, append(args, "--state-dir="+s.state)...)
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("gateway %v: exit %d: %s", args, code, p.log.String())
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pids are the processes that last as long as the stage. The others' time is the test's own once it has waited for them.
func (s *stage) pids() []int { return []int{s.gateway.cmd.Process.Pid, s.sim.cmd.Process.Pid} }
