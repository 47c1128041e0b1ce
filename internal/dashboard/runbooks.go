package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
)

const runbooksPath = "/ui/runbooks/"

// shelf serves what to do about each alert: the texts as they were written, and a list of them. A name is looked up in
// the list and is never a path.
type shelf struct {
	files map[string][]byte
	text  []byte // the list for a terminal
	page  []byte // the list for a browser
}

// runbook is one line of the list.
type runbook struct{ Name, File, Severity, Means string }

// opening is how a runbook begins: its name, how urgent it is, and a sentence that says what has happened.
var opening = regexp.MustCompile(`^# \w+\n\n\*\*(\w+)\.\*\*\s+((?s:.+?)\.)\s`)

func newShelf(files *assets, from fs.FS) *shelf {
	names, err := fs.Glob(from, "*.md") // in the order of their names
	if err != nil {
		panic(fmt.Errorf("dashboard: runbooks: %w", err))
	}
	b := &shelf{files: make(map[string][]byte, len(names))}
	list := make([]runbook, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			panic(fmt.Errorf("dashboard: runbooks: %w", err))
		}
		b.files[name] = text
		line := runbook{Name: strings.TrimSuffix(name, path.Ext(name)), File: name}
		if m := opening.FindSubmatch(text); m != nil {
			line.Severity, line.Means = string(m[1]), strings.Join(strings.Fields(string(m[2])), " ")
		}
		list = append(list, line)
	}
	b.render(files, list)
	return b
}

// render makes both lists, once: they are the same for everybody.
func (b *shelf) render(files *assets, list []runbook) {
	var text, page bytes.Buffer
	rows(&text, "RUNBOOK\tSEVERITY\tMEANS", func(row func(...any)) {
		for _, r := range list {
			row(runbooksPath+r.File, dash(r.Severity), dash(r.Means))
		}
	})
	t := template.Must(template.ParseFS(embedded, assetsRoot+"/runbooks.html"))
	err := t.Execute(&page, map[string]any{"Style": files.path("plain.css"), "Root": runbooksPath, "Runbooks": list})
	if err != nil {
		panic(fmt.Errorf("dashboard: list of runbooks: %w", err))
	}
	b.text, b.page = text.Bytes(), page.Bytes()
}

func (b *shelf) list(w http.ResponseWriter, r *http.Request) {
	kind, body := "text/plain; charset=utf-8", b.text
	if wantsHTML(r) {
		kind, body = "text/html; charset=utf-8", b.page
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache") // an update of the gateway may bring others
	h.Set("Vary", "Accept")
	send(w, r, body)
}

func (b *shelf) one(w http.ResponseWriter, r *http.Request) {
	text, ok := b.files[r.PathValue("name")]
	if !ok {
		http.Error(w, "no such runbook: "+runbooksPath+" lists them", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	send(w, r, text)
}
