package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
)

type clientCmd struct {
	List clientListCmd `cmd:"" help:"The clients, their keys and their quotas."`
	Set  clientSetCmd  `cmd:"" help:"Change the quota of a client, or the age of books that it accepts."`
}

type clientSetCmd struct {
	settings `embed:""`

	Name              string         `arg:"" help:"The client: the name that its keys were made with, or the id of a key without one."`
	RequestsPerSecond *int           `placeholder:"N" help:"Requests to the gateway a second, of all its keys together; 0 for the default."`
	UpstreamPerMinute *int           `placeholder:"N" help:"Units of the exchanges' limits a minute, all exchanges together; 0 for the default."`
	MaxAge            *time.Duration `placeholder:"AGE" help:"The age of a book that it accepts where a request names none, for example 5s; 0 for the default."`
	Streams           *int           `placeholder:"N" help:"Connections of streams at once; 0 for the default."`
}

// Run changes the client's settings in the keys file. A running gateway sees the file change.
func (c clientSetCmd) Run(sys system) error {
	conf, err := c.load(sys)
	if err != nil {
		return err
	}
	if c.RequestsPerSecond == nil && c.UpstreamPerMinute == nil && c.MaxAge == nil && c.Streams == nil {
		return errors.New("nothing to change: give --requests-per-second, --upstream-per-minute, --max-age or --streams")
	}
	if c.MaxAge != nil && *c.MaxAge%time.Millisecond != 0 {
		return fmt.Errorf("--max-age %v: it is kept in whole milliseconds", *c.MaxAge)
	}
	if c.MaxAge != nil && *c.MaxAge > conf.StaleMaxAge {
		return fmt.Errorf("--max-age %v: no copy older than stale_max_age is served, which is %v here", *c.MaxAge, conf.StaleMaxAge)
	}
	after, err := keys.SetClient(conf.KeysFile, c.Name, func(k *keys.Client) {
		take(&k.RequestsPerSecond, c.RequestsPerSecond)
		take(&k.UpstreamPerMinute, c.UpstreamPerMinute)
		take(&k.MaxAge, c.MaxAge)
		take(&k.Streams, c.Streams)
	})
	if err != nil {
		return err
	}
	row := clientRowOf(after, conf.ClientDefaults)
	if _, err := fmt.Fprintf(sys.out, "Client %s: %s requests a second, %s units of exchanges' limits a minute, age of books %s, streams %s. "+
		"Running gateways take it over within 2 s.\n", row.Client, row.requests(), row.upstream(), row.age(), row.streams()); err != nil {
		return err
	}
	f, err := keys.Load(conf.KeysFile, time.Now())
	if err == nil && !slices.ContainsFunc(f.Keys, func(k keys.Key) bool { return k.Client == c.Name }) {
		fmt.Fprintf(sys.err, "Warning: no key belongs to client %s yet. Make one with: %s key new --client %s --scope market:read\n", c.Name, sys.name(), c.Name)
	}
	return nil
}

func take[T any](setting, given *T) {
	if given != nil {
		*setting = *given
	}
}

type clientListCmd struct {
	settings `embed:""`

	Output string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"table or json, default table."`
}

// clientRow is a client as it is listed. A null setting is the gateway's default.
type clientRow struct {
	Client            string   `json:"client"`
	Keys              []string `json:"keys"` // ids of those that have not expired
	RequestsPerSecond *int     `json:"requests_per_second"`
	UpstreamPerMinute *int     `json:"upstream_per_minute"`
	MaxAgeMS          *int64   `json:"max_age_ms"`
	Streams           *int     `json:"streams"`

	defaults config.Quota
}

// Run lists the clients that have keys or settings.
func (c clientListCmd) Run(sys system) error {
	now := time.Now()
	conf, f, err := c.loadKeys(sys, now)
	if err != nil {
		return err
	}
	none := "There are no clients: each key belongs to one, and there are no keys."
	return writeRows(sys.out, c.Output, clientRows(f, conf.ClientDefaults, now), none, "CLIENT\tKEYS\tREQUESTS/S\tUNITS/MIN\tAGE OF BOOKS\tSTREAMS", func(r *clientRow) []string {
		ids := ""
		for _, id := range r.Keys {
			ids += " " + id
		}
		return []string{r.Client, cmp.Or(ids, " none")[1:], r.requests(), r.upstream(), r.age(), r.streams()}
	})
}

func clientRows(f *keys.File, defaults config.Quota, now time.Time) []clientRow {
	rows := make([]clientRow, 0, len(f.Clients)+len(f.Keys))
	place := make(map[string]int)
	row := func(name string) *clientRow {
		i, ok := place[name]
		if !ok {
			i = len(rows)
			place[name] = i
			rows = append(rows, clientRowOf(keys.Client{Name: name}, defaults))
		}
		return &rows[i]
	}
	for _, c := range f.Clients {
		*row(c.Name) = clientRowOf(c, defaults)
	}
	for i := range f.Keys {
		r := row(f.Keys[i].Client)
		if !f.Keys[i].Expired(now) {
			r.Keys = append(r.Keys, f.Keys[i].ID)
		}
	}
	slices.SortFunc(rows, func(a, b clientRow) int { return cmp.Compare(a.Client, b.Client) })
	return rows
}

func clientRowOf(c keys.Client, defaults config.Quota) clientRow {
	return clientRow{
		Client: c.Name, Keys: []string{}, RequestsPerSecond: set(c.RequestsPerSecond), UpstreamPerMinute: set(c.UpstreamPerMinute),
		MaxAgeMS: set(c.MaxAge.Milliseconds()), Streams: set(c.Streams), defaults: defaults,
	}
}

func set[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (r *clientRow) requests() string {
	return orDefault(r.RequestsPerSecond, r.defaults.RequestsPerSecond)
}

func (r *clientRow) upstream() string {
	return orDefault(r.UpstreamPerMinute, r.defaults.UpstreamPerMinute)
}

func (r *clientRow) age() string {
	if r.MaxAgeMS == nil {
		return "default"
	}
	return (time.Duration(*r.MaxAgeMS) * time.Millisecond).String()
}

func (r *clientRow) streams() string {
	if r.Streams == nil {
		return "default"
	}
	return strconv.Itoa(*r.Streams)
}

func orDefault(own *int, otherwise int) string {
	if own == nil {
		return strconv.Itoa(otherwise) + " (default)"
	}
	return strconv.Itoa(*own)
}
