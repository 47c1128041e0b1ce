// Package swaggerui is the page that shows the contract of the API to people: Swagger UI, embedded, whole in itself. It loads
// nothing from another origin and knows nothing of the document but its address beside the page, openapi.json.
package swaggerui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Path is where the page belongs: it looks for its files below that, and for the document beside it.
const Path = "/docs"

//go:embed files
var embedded embed.FS

// kinds are the types of the files that are served, by the name's end.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".txt":  "text/plain; charset=utf-8",
	"":      "text/plain; charset=utf-8", // LICENSE, NOTICE
}

// page is the name of the page itself.
const page = "page.html"

// packed ends the names of files that are kept compressed: the bundle goes from 1.7 MB to 0.46 MB, in the binary too.
const packed = ".gz"

// UI holds the files. It is immutable.
type UI struct{ files map[string]file }

type file struct {
	kind string
	tag  string // of its bytes, weak: the same for both codings
	body []byte // as it is kept
	size int    // uncompressed
	gzip bool   // body is compressed
}

// New reads the embedded files. It panics if they are broken, which is a mistake of the programmer's.
func New() *UI {
	u := &UI{files: map[string]file{}}
	entries, err := embedded.ReadDir("files")
	if err != nil {
		panic(fmt.Errorf("swaggerui: %w", err))
	}
	for _, e := range entries {
		body, err := embedded.ReadFile("files/" + e.Name())
		if err != nil {
			panic(fmt.Errorf("swaggerui: %w", err))
		}
		name, zipped := strings.CutSuffix(e.Name(), packed)
		kind, ok := kinds[path.Ext(name)]
		if !ok {
			continue // a note for who reads the source
		}
		sum := sha256.Sum256(body)
		f := file{kind: kind, tag: `W/"` + hex.EncodeToString(sum[:8]) + `"`, body: body, size: len(body), gzip: zipped}
		if zipped {
			f.size = int(binary.LittleEndian.Uint32(body[len(body)-4:])) // RFC 1952 section 2.3.1: ISIZE ends the file
		}
		u.files[name] = f
	}
	if _, ok := u.files[page]; !ok {
		panic("swaggerui: there is no " + page)
	}
	return u
}

// Page answers with the page.
func (u *UI) Page(w http.ResponseWriter, r *http.Request) { u.send(w, r, u.files[page]) }

// File answers with a file of the page. It is false, and nothing is written, if there is none of this name.
func (u *UI) File(w http.ResponseWriter, r *http.Request, name string) bool {
	f, ok := u.files[name]
	if !ok || name == page {
		return false
	}
	u.send(w, r, f)
	return true
}

// policy permits the page its own files and questions to its own origin. Swagger UI sets styles of elements by script, which
// takes 'unsafe-inline' for styles; its pictures are part of its style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; form-action 'none'"

func (u *UI) send(w http.ResponseWriter, r *http.Request, f file) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // kept, and asked for again: the next build may have another
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	if f.gzip && acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		f.size, f.gzip = len(f.body), false
	}
	h.Set("Content-Length", strconv.Itoa(f.size))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	var from io.Reader = bytes.NewReader(f.body)
	if f.gzip { // for who cannot unpack it
		z, err := gzip.NewReader(from)
		if err != nil {
			panic(fmt.Errorf("swaggerui: %w", err)) // a test reads them all
		}
		from = z
	}
	_, _ = io.Copy(w, from) // who went away does not read it
}

// acceptsGzip reads the header as far as browsers use it: one that mentions gzip wants it, unless it says q=0.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.TrimRight(strings.ReplaceAll(weight, " ", ""), "0.") != "q="
		}
	}
	return false
}
