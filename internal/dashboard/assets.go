package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

const (
	assetsPath = "/ui/assets/"
	assetsRoot = "assets"
)

// assets are the embedded files. They are served under a version that is made of all of their bytes: a page of an older
// build never loads a module of a newer one, and a browser may keep what it has for as long as it likes.
type assets struct {
	version string
	files   map[string]asset
}

type asset struct {
	kind   string // media type
	plain  []byte
	zipped []byte // nil where it would save nothing
}

// kinds are the types of the files that are served. A file of another type is not: the pages' templates, for instance.
var kinds = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
	"":     "text/plain; charset=utf-8", // LICENSE
}

func newAssets(from fs.FS) *assets {
	a := &assets{files: map[string]asset{}}
	sum := sha256.New()
	err := fs.WalkDir(from, assetsRoot, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(body))
		sum.Write(body)
		if kind, ok := kinds[path.Ext(name)]; ok {
			a.files[strings.TrimPrefix(name, assetsRoot+"/")] = asset{kind: kind, plain: body, zipped: zip(body)}
		}
		return nil
	})
	if err != nil {
		panic(fmt.Errorf("dashboard: embedded files: %w", err))
	}
	a.version = hex.EncodeToString(sum.Sum(nil))[:16]
	return a
}

// zip compresses once, at the start. The chart library goes from 145 KB to 42 KB, which a phone at night notices.
func zip(body []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	if buf.Len() >= len(body)*9/10 {
		return nil
	}
	return buf.Bytes()
}

// path is where a file is served.
func (a *assets) path(name string) string {
	if _, ok := a.files[name]; !ok {
		panic("dashboard: no embedded file " + name)
	}
	return assetsPath + a.version + "/" + name
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[r.PathValue("name")]
	if !ok || r.PathValue("version") != a.version {
		// Another version's file must not be kept under this name by anybody.
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "no such file in this version of the dashboard: reload the page", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if f.zipped != nil && acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	send(w, r, body)
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

// send writes an answer that is held as a whole. The server leaves out the body of a HEAD.
func send(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who went away does not read it
	}
}
