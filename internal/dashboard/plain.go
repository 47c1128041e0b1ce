package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"text/tabwriter"
	"time"

	"exchange-gateway/internal/ops"
)

// plain renders an overview on the server: as a page without a script, and as text for a terminal.
type plain struct {
	overview func() *ops.Overview
	page     *template.Template
	style    string
}

func newPlain(files *assets, overview func() *ops.Overview) *plain {
	t := template.Must(template.New("plain.html").Funcs(template.FuncMap{
		"state": ops.State.Text, "circuit": circuitWord, "class": className, "what": overrideWord, "client": clientName, "word": word, "age": age,
		"at": at, "ago": ago, "until": until,
		"atp": func(t *time.Time) string { return atOr(t, "") },
		"in":  func(now time.Time, t *time.Time) string { return until(now, *t) },
	}).ParseFS(embedded, assetsRoot+"/plain.html"))
	return &plain{overview: overview, page: t, style: files.path("plain.css")}
}

func (p *plain) html(w http.ResponseWriter) {
	var buf bytes.Buffer
	err := p.page.Execute(&buf, struct {
		*ops.Overview
		Style string
	}{p.overview(), p.style})
	if err != nil { // the template met a value that it was not written for
		http.Error(w, "the page could not be rendered: GET /v1/circuits has the same", http.StatusInternalServerError)
		return
	}
	headers(w, "text/html; charset=utf-8")
	_, _ = buf.WriteTo(w) // who went away does not read it
}

func (p *plain) text(w http.ResponseWriter) {
	var buf bytes.Buffer
	writeText(&buf, p.overview())
	headers(w, "text/plain; charset=utf-8")
	_, _ = buf.WriteTo(w) // who went away does not read it
}

func headers(w http.ResponseWriter, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
}

// writeText is the overview in aligned columns, the headline first. What somebody else wrote is stripped of everything
// that a terminal would obey.
func writeText(buf *bytes.Buffer, o *ops.Overview) {
	fmt.Fprintln(buf, printable(o.Headline))
	fmt.Fprintf(buf, "%s, version %s, at %s, up %s, history since %s\n", printable(o.Instance), printable(o.Version),
		at(o.Now), span(o.Now.Sub(o.StartedAt)), at(o.HistorySince))
	for _, d := range o.Degraded {
		fmt.Fprintf(buf, "the gateway itself: %s\n", printable(d))
	}

	rows(buf, "\nEXCHANGE\tSTATE\tSINCE\tNEXT TRY\tCLIENTS GET\tWHY", func(row func(...any)) {
		for i := range o.Exchanges {
			e := &o.Exchanges[i]
			row(e.ID, e.State.Text(), ago(o.Now, e.Since), probe(o.Now, e.NextProbe, e.ProbeDue), dash(e.Clients), dash(e.Why))
		}
	})
	writeCircuits(buf, o)
	writeInForce(buf, o)
	if len(o.Books) > 0 {
		rows(buf, "\nBOOK\tSYMBOL\tSTATUS\tAGE\tSOURCE\tSPREAD\tREASON", func(row func(...any)) {
			for i := range o.Books {
				b := &o.Books[i]
				row(b.Exchange, b.Symbol, b.Status, age(b.AgeMS), dash(b.Source), word(b.Spread), dash(b.Reason))
			}
		})
	}
	if len(o.Clients) > 0 {
		rows(buf, "\nCLIENT, LAST MINUTE\tUNITS\tREQUESTS\tREFUSED\tIN FLIGHT\tSTREAMS", func(row func(...any)) {
			for _, c := range o.Clients {
				row(clientName(c.Client), c.Upstream, c.Requests, c.Refused, c.InFlight, c.Streams)
			}
		})
	}
}

func writeCircuits(buf *bytes.Buffer, o *ops.Overview) {
	rows(buf, "\nCIRCUIT\tCLASS\tCOMPUTED\tOVERRIDE\tSINCE\tNEXT PROBE\tFAILED\tIN A ROW\tCAUSE", func(row func(...any)) {
		for i := range o.Exchanges {
			for j := range o.Exchanges[i].Circuits {
				c := &o.Exchanges[i].Circuits[j]
				override := "-"
				if c.Isolated {
					override = "isolated"
				}
				row(o.Exchanges[i].ID, className(c.Class, c.Family), circuitWord(c.State), override, ago(o.Now, &c.Since),
					probe(o.Now, c.OpenUntil, c.ProbeDue), fmt.Sprintf("%d of %d", c.Window.Failures, c.Window.Settled),
					c.Window.Consecutive, dash(c.CauseText))
			}
		}
	})
}

// writeInForce lists what somebody put in force and what an exchange forbids, if there is any.
func writeInForce(buf *bytes.Buffer, o *ops.Overview) {
	for i := range o.Exchanges {
		e := &o.Exchanges[i]
		for j := range e.Overrides {
			v := &e.Overrides[j]
			fmt.Fprintf(buf, "\n%s %s by %s, for another %s: %s\n", e.ID, overrideWord(*v), printable(v.Actor),
				until(o.Now, v.Until), printable(v.Reason))
		}
		for _, g := range e.Gates {
			fmt.Fprintf(buf, "\n%s: no request (%s) for another %s: %s\n", e.ID, printable(string(g.Scope)+" "+g.Name),
				until(o.Now, g.Until), printable(g.Kind))
		}
		for _, m := range e.Maintenance {
			fmt.Fprintf(buf, "\n%s: maintenance from %s to %s: %s\n", e.ID, atOr(m.From, "now"), atOr(m.Until, "an unknown time"),
				printable(m.Note))
		}
	}
}

// rows writes a table, with a line for its head.
func rows(buf *bytes.Buffer, head string, fill func(row func(...any))) {
	t := tabwriter.NewWriter(buf, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	fill(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, printable(fmt.Sprint(c)))
		}
		fmt.Fprintln(t)
	})
	_ = t.Flush() // into a buffer
}
