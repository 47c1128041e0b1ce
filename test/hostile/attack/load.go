package attack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Load is a client that asks too often: paths in turn, at a pace that does not wait for answers.
type Load struct {
	Key   string // sent as a bearer token, "" for none
	Paths []string
	Rate  int // a second
	For   time.Duration
}

// LoadResult is what it got.
type LoadResult struct {
	Sent     int
	Failed   int            // without any answer
	Statuses map[int]int    // by status
	Codes    map[string]int // by code of the problem
	Late     int            // sends left out, as all workers still waited for answers
	NoRetry  int            // 429s without a Retry-After of at least a second
	NoLimits int            // answers without both of the RateLimit headers
	Limits   []string       // the RateLimit headers of the first 429
	First    string         // why the first failed
	Slowest  time.Duration  // of the 429s
}

// loadWorkers bounds the requests in flight. A send that finds none free is left out and counted: a queue would be
// another attack than the one that was ordered.
const loadWorkers = 256

func (l *Load) run(ctx context.Context, target string) LoadResult {
	ctx, cancel := context.WithTimeout(ctx, l.For)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: loadWorkers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	r := &loadResult{LoadResult: LoadResult{Statuses: map[int]int{}, Codes: map[string]int{}}}
	jobs := make(chan string)
	var workers sync.WaitGroup
	for range loadWorkers {
		workers.Go(func() {
			for path := range jobs {
				r.ask(client, "http://"+target+path, l.Key)
			}
		})
	}
	// A tick for each millisecond and as many sends as are due by then: a ticker drops ticks on a busy machine.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for n := 0; ctx.Err() == nil; {
		for due := int(time.Since(start).Seconds() * float64(l.Rate)); n < due; n++ {
			select {
			case jobs <- l.Paths[n%len(l.Paths)]:
			default:
				r.late()
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	close(jobs)
	workers.Wait()
	return r.LoadResult
}

type loadResult struct {
	mu sync.Mutex
	LoadResult
}

func (r *loadResult) late() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Late++
}

// ask sends one request. Its own bound is the client's: at the end of the order those in flight are waited for.
func (r *loadResult) ask(client *http.Client, url, key string) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		r.note(nil, "", 0, err)
		return
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	start := time.Now()
	res, err := client.Do(req)
	if err != nil {
		r.note(nil, "", 0, err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	var p struct{ Code string }
	if res.StatusCode >= http.StatusBadRequest {
		_ = json.Unmarshal(body, &p) // no code is an outcome, too
	}
	r.note(res, p.Code, time.Since(start), err)
}

func (r *loadResult) note(res *http.Response, code string, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sent++
	if err != nil {
		r.Failed++
		if r.First == "" {
			r.First = err.Error()
		}
		return
	}
	r.Statuses[res.StatusCode]++
	if code != "" {
		r.Codes[code]++
	}
	limits := []string{res.Header.Get("RateLimit-Policy"), res.Header.Get("RateLimit")}
	if limits[0] == "" || limits[1] == "" {
		r.NoLimits++
	}
	if res.StatusCode != http.StatusTooManyRequests {
		return
	}
	if r.Limits == nil {
		r.Limits = limits
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || n < 1 {
		r.NoRetry++
	}
	r.Slowest = max(r.Slowest, took)
}
