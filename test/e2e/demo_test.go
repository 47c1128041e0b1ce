package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The demo shows an outage and a recovery by itself, to a client of its own as well, and ends on Ctrl-C.
func TestDemo_outageAndRecovery(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := launch(t, "gateway", []string{"TMPDIR=" + tmp}, "demo", "--every=40s", "--outage=12s", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0")
	welcome := regexp.MustCompile(`curl -i '(http://[^/]+)(/v1/exchanges/okx/orderbook[^']+)'`)
	var at []string
	eventually(t, 10*time.Second, "the demo says what to try", func() bool { at = welcome.FindStringSubmatch(p.out.String()); return at != nil })
	g := &gateway{process: p, public: at[1], client: &http.Client{Timeout: 5 * time.Second}}
	ask := func() answer {
		a := g.get(t.Context(), at[1]+at[2])
		if a.status != http.StatusOK || len(a.Bids) != 2 {
			t.Fatalf("a book in the demo: %v", a)
		}
		return a
	}
	eventually(t, 10*time.Second, "the book is live", func() bool { return !ask().Stale })
	var stale answer
	eventually(t, 30*time.Second, "a stale book, labelled", func() bool { stale = ask(); return stale.Stale && stale.age() > 2*time.Second })
	if stale.reason() == "" || stale.Freshness.Status != "stale" || stale.header.Get("Age") == "" || !strings.Contains(stale.header.Get("Cache-Status"), "ttl=-") {
		t.Errorf("the stale book is not labelled: %v %v", stale, stale.header)
	}
	spent := eventually(t, 40*time.Second, "the book is live again", func() bool { return !ask().Stale })
	t.Logf("live again %v after a stale book was first seen", spent)
	for _, words := range []string{"[simulated] says that it is in maintenance", "market data is failing: ", "stale, ", "is healthy again", "live again after"} {
		eventually(t, 5*time.Second, "the demo says "+words, func() bool { return strings.Contains(p.out.String(), words) })
	}
	if key := regexp.MustCompile(`Bearer (gw_\w+)`).FindStringSubmatch(p.out.String()); key == nil {
		t.Error("the demo prints no key to try")
	} else {
		g.key = key[1]
		eventually(t, 15*time.Second, "a balance with the printed key", func() bool { return g.balance("binance", "main").status == http.StatusOK })
	}
	start := time.Now()
	p.signal(syscall.SIGINT)
	if code := p.wait(5 * time.Second); code != 0 {
		t.Errorf("Ctrl-C: exit %d: %s", code, p.log.String())
	}
	t.Logf("ended %v after Ctrl-C", time.Since(start))
	if !strings.Contains(p.out.String(), "stopped: ") {
		t.Error("the demo does not say that it stopped")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// The README's quick start, as it is written, in a folder that holds what the repository does and nothing else.
func TestQuickStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the demo's own outage, with its default timing")
	}
	t.Parallel()
	for _, tool := range []string{"git", "tar", "make", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, tool+" is not installed")
		}
	}
	dir := filepath.Join(t.TempDir(), "clone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "-c", "git -c safe.directory='*' -C "+root+" archive HEAD | tar -x -C "+dir).CombinedOutput(); err != nil || !exists(dir, "README.md") {
		missing(t, "this is not a git repository: "+string(out))
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("(?m)^make demo$").Find(readme)
	curl := regexp.MustCompile(`(?m)^curl -i 'http://127\.0\.0\.1:8080/.*'$`).Find(readme)
	if command == nil || curl == nil {
		t.Fatal("the README has no `make demo` or no curl line to try")
	}
	if asked(string(curl)) != "" {
		missing(t, "something else listens on 127.0.0.1:8080")
	}
	start := time.Now()
	p := launchIn(t, dir, os.Environ(), "sh", "-c", "exec "+string(command))
	eventually(t, 4*time.Minute, "`make demo` answers", func() bool {
		if p.ended() {
			t.Fatalf("`make demo` ended with %d: %s%s", p.code, p.out.String(), p.log.String())
		}
		time.Sleep(200 * time.Millisecond)
		return strings.HasPrefix(asked(string(curl)), "HTTP/1.1 200")
	})
	t.Logf("answers after %v", time.Since(start))
	var stale string
	eventually(t, 2*time.Minute, "the README's curl line shows a stale book", func() bool {
		time.Sleep(200 * time.Millisecond)
		stale = asked(string(curl))
		if !strings.HasPrefix(stale, "HTTP/1.1 200") {
			t.Fatalf("the README's curl line: %q", stale)
		}
		return strings.Contains(stale, `"stale":true`)
	})
	t.Logf("a stale book after %v", time.Since(start))
	for _, label := range []string{"Age: ", "Cache-Status: exchange-gateway; hit; ttl=-", `"status":"stale"`, `"age_ms":`, `"reason":"`, `"confirmed_at":"`} {
		if !strings.Contains(stale, label) {
			t.Errorf("the stale book lacks %q: %s", label, stale)
		}
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) // as Ctrl-C does: to make and all below it
	p.wait(15 * time.Second)
	if asked(string(curl)) != "" {
		t.Error("the demo still answers after Ctrl-C")
	}
}

// asked runs a curl line and gives what it printed, "" if nobody answered.
func asked(curl string) string {
	out, err := exec.Command("sh", "-c", strings.Replace(curl, "curl ", "curl --silent --max-time 5 ", 1)).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// missing skips a test that cannot run here, and fails it where it has to.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why + ", and CI must run this test")
	}
	t.Skip(why)
}
