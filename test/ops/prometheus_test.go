package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// server is a real Prometheus that scrapes a gateway once a second.
type server struct {
	base   string
	began  time.Time
	client *http.Client
}

// quickly is a wait of an alert: the test's outage lasts seconds, not minutes.
var quickly = regexp.MustCompile(`(?m)^(\s+for: )\d+m$`)

// scrape starts Prometheus with the files of ops/prometheus, on this target, and with seconds in the place of minutes.
func scrape(t *testing.T, prometheus, target string) *server {
	t.Helper()
	dir := t.TempDir()
	conf := read(t, "ops/prometheus/prometheus.yml")
	conf = strings.ReplaceAll(strings.ReplaceAll(conf, "gateway:8081", target), ": 15s", ": 1s")
	write(t, conf, dir, "prometheus.yml")
	for _, file := range glob(t, "ops/prometheus/rules/*.yml") {
		write(t, quickly.ReplaceAllString(read(t, file), "${1}1s"), dir, "rules", filepath.Base(file))
	}
	s := &server{began: time.Now(), client: &http.Client{Timeout: 20 * time.Second}}
	p := start(t, prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0")
	listening := regexp.MustCompile(`msg="Listening on" .*address=(127\.0\.0\.1:\d+)`)
	eventually(t, time.Minute, "Prometheus says where it listens", func() bool {
		m := listening.FindStringSubmatch(p.out.String())
		if m != nil {
			s.base = "http://" + m[1]
		}
		return m != nil
	})
	return s
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ask calls Prometheus' API and decodes its data.
func (s *server) ask(ctx context.Context, path string, query url.Values, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() // only read
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	var a struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &a); err != nil || a.Status != "success" {
		return fmt.Errorf("%s: %s %s", res.Status, a.Error, body[:min(len(body), 300)])
	}
	return json.Unmarshal(a.Data, data)
}

// numbers counts the samples of a query over all of the test that are numbers.
func (s *server) numbers(ctx context.Context, expr string) (n int, err error) {
	for grafana, value := range map[string]string{"$instance": "127.0.0.1:8081", "$exchange": ".*", "$__rate_interval": "30s"} {
		expr = strings.ReplaceAll(expr, grafana, value)
	}
	var data struct {
		Result []struct {
			Values [][2]any `json:"values"`
		} `json:"result"`
	}
	now := time.Now()
	err = s.ask(ctx, "/api/v1/query_range", url.Values{
		"query": {expr}, "step": {"1"}, "start": {fmt.Sprint(s.began.Unix())}, "end": {fmt.Sprint(now.Unix())},
	}, &data)
	for _, series := range data.Result {
		for _, v := range series.Values {
			if v[1] != "NaN" {
				n++
			}
		}
	}
	return n, err
}
