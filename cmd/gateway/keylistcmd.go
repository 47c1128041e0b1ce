package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/ops"
)

type keyListCmd struct {
	settings `embed:""`

	Output string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"table or json, default table."`
}

// keyRow is a key as it is listed, without its hash: that is of no use to anybody but a gateway.
type keyRow struct {
	ID       string     `json:"id"`
	Client   string     `json:"client"`
	Scopes   []string   `json:"scopes"`
	Created  *time.Time `json:"created"` // null if the file does not say
	Expires  *time.Time `json:"expires"` // null for never
	Expired  bool       `json:"expired"`
	LastUsed *time.Time `json:"last_used"` // null if it was not; up to a minute old
	Note     string     `json:"note"`
}

// Run lists the keys of the keys file, and when a gateway beside it last saw each.
func (k keyListCmd) Run(sys system) error {
	now := time.Now()
	conf, f, err := k.loadKeys(sys, now)
	if err != nil {
		return err
	}
	uses, err := keys.LastUses(conf.KeysFile)
	if err != nil {
		fmt.Fprintf(sys.err, "Warning: when keys were last used is not known: %v\n", err)
	}
	rows := make([]keyRow, 0, len(f.Keys))
	for i := range f.Keys {
		o := &f.Keys[i]
		rows = append(rows, keyRow{
			ID: o.ID, Client: o.Client, Scopes: o.Scopes.Strings(), Created: known(o.Created), Expires: known(o.Expires),
			Expired: o.Expired(now), LastUsed: known(uses[o.ID]), Note: o.Note,
		})
	}
	none := "There are no keys. Make one with: " + sys.name() + " key new --scope market:read"
	return writeRows(sys.out, k.Output, rows, none, "ID\tCLIENT\tSCOPES\tEXPIRES\tLAST USED\tNOTE", func(o *keyRow) []string {
		return []string{o.ID, o.Client, strings.Join(o.Scopes, " "), ends(o, now), used(o, now), cmp.Or(printable(o.Note), "-")}
	})
}

// loadKeys reads the configuration and the keys file that it names.
func (s settings) loadKeys(sys system, now time.Time) (conf config.Config, f *keys.File, err error) {
	if conf, err = s.load(sys); err != nil {
		return conf, nil, err
	}
	f, err = keys.Load(conf.KeysFile, now)
	return conf, f, err
}

func ends(o *keyRow, now time.Time) string {
	switch {
	case o.Expires == nil:
		return "never"
	case o.Expired:
		return o.Expires.UTC().Format(time.DateOnly) + " (over)"
	}
	return o.Expires.UTC().Format(time.DateOnly) + " (in " + ops.Span(o.Expires.Sub(now)) + ")"
}

// used is when a key was last used. The file is up to a minute behind.
func used(o *keyRow, now time.Time) string {
	switch {
	case o.LastUsed == nil:
		return "never"
	case now.Sub(*o.LastUsed) < 2*time.Minute:
		return "just now"
	}
	return ops.Span(now.Sub(*o.LastUsed)) + " ago"
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeRows writes a list in the form that was asked for: JSON, or aligned columns. none is said where a table would be empty.
func writeRows[T any](w io.Writer, output string, rows []T, none, head string, row func(*T) []string) error {
	switch {
	case output == "json":
		return writeJSON(w, rows)
	case len(rows) == 0:
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	for i := range rows {
		fmt.Fprintln(t, strings.Join(row(&rows[i]), "\t"))
	}
	return t.Flush()
}

// printable takes out what moves a cursor or colours a terminal: a note is whatever somebody wrote into the file.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
