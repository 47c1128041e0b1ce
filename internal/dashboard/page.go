package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
)

// page is the dashboard's document. It is the same for everybody and made once: what changes comes by the event stream.
type page struct{ body []byte }

func newPage(files *assets, c Config) *page {
	t := template.Must(template.ParseFS(embedded, assetsRoot+"/page.html"))
	var buf bytes.Buffer
	err := t.Execute(&buf, map[string]string{
		"Root":      assetsPath + files.version + "/",
		"Runbooks":  runbooksPath,
		"PublicURL": c.PublicURL,
	})
	if err != nil {
		panic(fmt.Errorf("dashboard: page: %w", err))
	}
	return &page{body: buf.Bytes()}
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache") // it names the version of the files: after an update it must be asked for again
	h.Set("Vary", "Accept")
	send(w, r, p.body)
}
