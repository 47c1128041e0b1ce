package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/client"
)

// bookServer is a gateway that answers everything with one status and body.
func bookServer(t *testing.T, status int, body string) (base string, asked *http.Request) {
	t.Helper()
	asked = new(http.Request)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = *r
		w.Header().Set("Content-Type", map[bool]string{true: "application/json", false: "application/problem+json"}[status == 200])
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

const liveBook = `{"exchange":"okx","symbol":"BTC/USDT","exchange_symbol":"BTC-USDT","stale":false,
 "freshness":{"status":"live","source":"stream","age_ms":0,"confirmed_at":"2026-11-29T02:00:00.123Z","circuit":"closed"},
 "depth":2,"complete":true,"nonce":7,"bids":[["64073.0","0.58849577"],["64072.9","10.1"]],"asks":[["64073.1","1.07909367"]]}`

func TestBook_once(t *testing.T) {
	base, asked := bookServer(t, 200, liveBook)
	out, _, err := gateway(t, []string{"GATEWAY_URL=" + base, "GATEWAY_KEY=gw_demo_fake"}, "book", "okx", "BTC/USDT", "--depth=2", "--max-age=1.5s")
	if err != nil || asked.URL.RequestURI() != "/v1/exchanges/okx/orderbook?depth=2&max_age_ms=1500&symbol=BTC%2FUSDT" || asked.Header.Get("Authorization") != "Bearer gw_demo_fake" {
		t.Errorf("%v; asked for %s with %v", err, asked.URL, asked.Header)
	}
	first, rest, _ := strings.Cut(out, "\n")
	if !strings.HasPrefix(first, "okx BTC/USDT  LIVE  from stream, confirmed ") {
		t.Errorf("first line %q", first)
	}
	const want = `mid 64073.05  spread 0.1
      size      bid | ask            size
0.58849577  64073.0 | 64073.1  1.07909367
      10.1  64072.9 |
`
	if rest != want {
		t.Errorf("got\n%s\nwant\n%s", rest, want)
	}
	out, _, err = gateway(t, nil, "book", "okx", "BTC/USDT", "-o", "json", "--gateway", base)
	if err != nil || !strings.Contains(out, `"bids":[["64073.0","0.58849577"],["64072.9","10.1"]]`) || strings.Count(out, "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestBook_exitCodes(t *testing.T) {
	for _, x := range []struct {
		status int
		body   string
		code   int
		says   []string
	}{
		{200, strings.Replace(liveBook, `"status":"live"`, `"status":"stale","reason":"circuit_open"`, 1), 3, []string{"STALE: circuit open", "confirmed "}},
		{503, `{"code":"circuit_open","detail":"The exchange kept failing.","retryable":true,"retry_after_ms":12000}`, 4, []string{"The exchange kept failing.", "Try again in 12 s."}},
		{503, `{"code":"book_too_stale","detail":"x","reason":"circuit_open","retryable":true,"retry_after_ms":1000,"age_ms":90000}`, 4, []string{"The last copy is 1 min 30 s old."}},
		{503, `{"code":"book_too_stale","detail":"x","reason":"timeout","retryable":true,"retry_after_ms":1000}`, 1, []string{"x"}},
		{404, `{"code":"symbol_unknown","detail":"Nobody lists \u001b[31mthis."}`, 1, []string{"Nobody lists [31mthis."}},
		{404, `{"code":"exchange_unknown","detail":"The path names an exchange that is not enabled here.","allowed":["binance","okx"]}`, 1, []string{"This exchange is not enabled at the gateway. Enabled: binance, okx."}},
		{502, `<html>`, 1, []string{"502"}},
		{200, `{}`, 1, []string{"not an answer of a gateway"}},
	} {
		base, _ := bookServer(t, x.status, x.body)
		out, said, err := gateway(t, nil, "book", "okx", "BTC/USDT", "--gateway", base)
		var last strings.Builder
		if code := exitCode(err, &last); code != x.code {
			t.Errorf("%s: exit %d, want %d", x.body, code, x.code)
		}
		for _, w := range x.says {
			if !strings.Contains(out+said+last.String(), w) {
				t.Errorf("%s: said %q, want %q", x.body, out+said+last.String(), w)
			}
		}
	}
}

func TestBook_commandLines(t *testing.T) {
	for line, want := range map[string]string{
		"book okx":                      "symbol",
		"book okx BTC/USDT -o yaml":     "text",
		"book okx BTC/USDT --depth=few": "depth",
	} {
		_, said, err := gateway(t, nil, strings.Fields(line)...)
		if exitCode(err, &strings.Builder{}) != 2 || !strings.Contains(said, want) {
			t.Errorf("%s: %v: %s, want %q", line, err, said, want)
		}
	}
	for line, want := range map[string]string{
		"book okx BTC/USDT --gateway 127.0.0.1:1":                  "write a URL",
		"book okx BTC/USDT --key-file /nowhere":                    "key file",
		"book okx BTC/USDT --depth=0":                              "--depth",
		"book okx BTC/USDT --depth=401 --watch":                    "400",
		"book okx BTC/USDT --max-age=-1s":                          "--max-age",
		"book okx BTCUSDT --watch --gateway http://127.0.0.1:1":    "BASE/QUOTE",
		"book okx BTC/USDT --gateway http://127.0.0.1:1 --depth=5": "gateway not heard",
	} {
		if _, _, err := gateway(t, nil, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestBook_keyFromFile(t *testing.T) {
	base, asked := bookServer(t, 200, liveBook)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("gw_file_fake\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		env  []string
		args []string
	}{{nil, []string{"--key-file=" + path}}, {[]string{"GATEWAY_KEY_FILE=" + path}, nil}, {[]string{"GATEWAY_KEY=gw_env_fake"}, []string{"--key-file=" + path}}} {
		if _, _, err := gateway(t, x.env, append([]string{"book", "okx", "BTC/USDT", "--gateway", base}, x.args...)...); err != nil {
			t.Error(err)
		}
		if got := asked.Header.Get("Authorization"); got != "Bearer gw_file_fake" {
			t.Errorf("%v %v: %q", x.env, x.args, got)
		}
	}
}

// terminal keeps what was written to it.
type terminal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// shows waits until all of the words have been written.
func (s *terminal) shows(t *testing.T, words ...string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		missing := ""
		for _, w := range words {
			if !strings.Contains(s.String(), w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q was not written: %s", missing, s)
		}
	}
}

// streamServer sends what it is given to one client, and cuts it off at the end.
func streamServer(t *testing.T) (base string, frames chan<- string) {
	t.Helper()
	texts := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		if _, _, err := conn.Read(r.Context()); err != nil {
			return
		}
		for text := range texts {
			if conn.Write(context.WithoutCancel(r.Context()), websocket.MessageText, []byte(text)) != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, texts
}

const (
	streamHead = `"channel":"orderbook","exchange":"okx","symbol":"BTC/USDT","exchange_symbol":"BTC-USDT","depth":5,"epoch":"e"`
	streamBook = `{"type":"snapshot",` + streamHead + `,"seq":1,"prev_seq":null,"status":"live","complete":true,"confirmed_at":"2026-11-29T02:00:00Z",` +
		`"sent_at":"2026-11-29T02:00:00Z","conflated":0,"bids":[["100","1"],["99","2"],["98","3"]],"asks":[["101","1"]]}`
	streamStale = `{"type":"status",` + streamHead + `,"status":"stale","reason":"timeout","since":"2026-11-29T02:00:01Z","confirmed_at":null,"sent_at":"2026-11-29T02:00:02Z"}`
)

// On a terminal the book is drawn in place; it says when it is stale and why, and when the gateway is lost. What was shown
// last is left behind.
func TestBookWatch_terminal(t *testing.T) {
	base, frames := streamServer(t)
	var out terminal
	c := bookCmd{gatewayFlags: gatewayFlags{Gateway: base}, Exchange: "okx", Symbol: "BTC/USDT", Depth: 2, Watch: true}
	gw, err := c.connect(system{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w, err := gw.Watch(ctx, client.Subscription{Exchange: "okx", Symbols: []string{"BTC/USDT"}, Depth: c.streamDepth()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	done := make(chan error, 1)
	go func() { done <- c.screen(ctx, system{out: &out, env: []string{"NO_COLOR=1"}}, w) }()
	out.shows(t, "\x1b[?1049h", "SYNCING", "no book to show")
	frames <- streamBook
	out.shows(t, "\x1b[H", "okx BTC/USDT  LIVE  from stream", "mid 100.5  spread 1", "1  100 | 101     1", "2   99 |", "Ctrl-C ends it\x1b[K\x1b[J")
	frames <- streamStale
	out.shows(t, "okx BTC/USDT  STALE since ", ": timeout, from stream, confirmed ")
	close(frames)
	out.shows(t, "THE GATEWAY IS LOST since ", ": the gateway is lost, from stream")
	stop()
	<-done
	if text := out.String(); strings.Contains(text, "  98 ") || strings.Contains(text, "\x1b[34m") {
		t.Errorf("deeper than asked, or in colour: %q", text)
	}
	_, after, ok := strings.Cut(out.String(), "\x1b[?1049l")
	if !ok || !strings.HasPrefix(after, "okx BTC/USDT  STALE") || strings.Contains(after, "\x1b") {
		t.Errorf("left behind %q", after)
	}
}

// Without a terminal each change is one line, and a book that is older than wanted is not in it.
func TestBookWatch_lines(t *testing.T) {
	base, frames := streamServer(t)
	var out, said terminal
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, system{args: []string{"book", "okx", "BTC/USDT", "--watch", "--depth=2", "--max-age=0s", "--gateway", base}, out: &out, err: &said})
	}()
	frames <- streamBook
	out.shows(t, "the gateway is heard\n", "okx BTC/USDT bid 100 x 1 ask 101 x 1 mid 100.5 spread 1  LIVE")
	frames <- streamStale
	out.shows(t, "okx BTC/USDT STALE since ")
	frames <- strings.NewReplacer("snapshot", "update", `"seq":1`, `"seq":2`, `"prev_seq":null`, `"prev_seq":1`, `"status":"live"`, `"status":"stale"`,
		`["100","1"],["99","2"],["98","3"]`, `["97","1"]`, `["101","1"]`, ``).Replace(streamBook)
	out.shows(t, ": older than --max-age 0s: not shown")
	close(frames)
	out.shows(t, "THE GATEWAY IS LOST: ")
	stop()
	if err := <-done; err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}
