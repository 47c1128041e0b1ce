package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// dashboards is how many dashboards look on: ten people with five screens.
const dashboards = 50

// measureWatching measures what dashboards that look on cost those who ask for books: the program's processor time per warm
// book, with and without them in turns.
func measureWatching(ctx context.Context, r *run) error {
	u, err := startUpstream(ctx)
	if err != nil {
		return err
	}
	defer u.stop()
	program, err := build(ctx, r.dir)
	if err != nil {
		return err
	}
	g, err := startGateway(ctx, program, filepath.Join(r.dir, "watched"), u.url)
	if err != nil {
		return err
	}
	defer g.stop()
	for i := range 40 { // a page of books to look at
		if _, err := g.good(ctx, coin(i), 100); err != nil {
			return err
		}
	}
	if _, err := g.good(ctx, "BTC", 100); err != nil {
		return err
	}
	alone := &measurement{server: g.process, url: g.bookURL("BTC", 100), authorization: g.authorization()}
	watched := &measurement{server: g.process, url: alone.url, authorization: alone.authorization}
	for range r.rounds {
		if err := alone.round(ctx); err != nil {
			return err
		}
		if err := withWatchers(ctx, g, watched); err != nil {
			return err
		}
	}
	r.ratio(fmt.Sprintf("warm book with %d dashboards watching / alone", dashboards), paired{watched.cpu, alone.cpu}, cpuMicros, 1.1)
	return nil
}

// withWatchers measures one round while dashboards read, each of whom must have got states meanwhile.
func withWatchers(ctx context.Context, g *gateway, m *measurement) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport := &http.Transport{MaxConnsPerHost: dashboards}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	began := make(chan error, dashboards)
	states := make([]int, dashboards)
	var reading sync.WaitGroup
	for i := range dashboards {
		reading.Go(func() { states[i] = watch(ctx, client, "http://"+g.admin, began) })
	}
	var err error
	for range dashboards {
		err = errors.Join(err, <-began)
	}
	if err == nil {
		time.Sleep(time.Second) // the first frames hold the history, and are not what is measured
		err = m.round(ctx)
	}
	cancel()
	reading.Wait()
	for _, n := range states {
		if err == nil && n < 1 {
			err = errors.New("a dashboard got no state while it watched")
		}
	}
	return err
}

// watch reads the event stream until ctx ends and counts the states that it brings. It reports its first frame to began.
func watch(ctx context.Context, client *http.Client, base string, began chan<- error) (states int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/circuits/events", nil)
	if err != nil {
		began <- err
		return 0
	}
	res, err := client.Do(req)
	if err != nil {
		began <- err
		return 0
	}
	defer res.Body.Close()
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	first := true
	for {
		line, err := lines.ReadString('\n')
		if first && (err != nil || strings.HasPrefix(line, "event: ")) {
			first = false
			began <- err
		}
		if err != nil {
			return states // ctx has ended, or the round says that something is wrong
		}
		if line == "event: state\n" {
			states++
		}
	}
}
