package swaggerui_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"exchange-gateway/internal/swaggerui"
)

// row is one file in the note about files of others.
var row = regexp.MustCompile(`(?m)^\| (\S+) \| ([0-9a-f]{64}) \|$`)

// foreign are the names and hashes of the files of others.
func foreign(t *testing.T) map[string]string {
	t.Helper()
	note, err := os.ReadFile("files/THIRD_PARTY.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(note), -1) {
		all[m[1]] = m[2]
	}
	if len(all) != 5 {
		t.Fatalf("the note names %d files, want 5", len(all))
	}
	return all
}

func ask(u *swaggerui.UI, name string, headers ...string) (*httptest.ResponseRecorder, bool) {
	r := httptest.NewRequest(http.MethodGet, swaggerui.Path+"/"+name, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	return w, u.File(w, r, name)
}

// TestFiles_areThoseOfThePackage holds what is served against the hashes in the note, and against the package itself where
// it is installed for the tests in a browser.
func TestFiles_areThoseOfThePackage(t *testing.T) {
	u := swaggerui.New()
	installed := filepath.Join("..", "..", "test", "dashboard", "node_modules", "swagger-ui-dist")
	for name, want := range foreign(t) {
		w, ok := ask(u, name)
		sum := sha256.Sum256(w.Body.Bytes())
		if got := hex.EncodeToString(sum[:]); !ok || got != want {
			t.Errorf("%s: SHA-256 %s, the note says %s", name, got, want)
		}
		original, err := os.ReadFile(filepath.Join(installed, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !bytes.Equal(original, w.Body.Bytes()) {
			t.Errorf("%s is not that of the package: %v", name, err)
		}
	}
}

func TestFiles_codings(t *testing.T) {
	u := swaggerui.New()
	for _, name := range []string{"swagger-ui-bundle.js", "swagger-ui.css", "start.js", "LICENSE"} {
		plain, _ := ask(u, name)
		packed, _ := ask(u, name, "Accept-Encoding", "br, gzip")
		for _, w := range []*httptest.ResponseRecorder{plain, packed} {
			if n := w.Header().Get("Content-Length"); n != strconv.Itoa(w.Body.Len()) || w.Code != http.StatusOK {
				t.Errorf("%s: status %d, Content-Length %s of %d bytes", name, w.Code, n, w.Body.Len())
			}
		}
		body := packed.Body.Bytes()
		if packed.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		} else if strings.HasPrefix(name, "swagger") {
			t.Errorf("%s is not compressed", name)
		}
		if !bytes.Equal(body, plain.Body.Bytes()) {
			t.Errorf("%s differs with its coding", name)
		}
		if refused, _ := ask(u, name, "Accept-Encoding", "gzip;q=0"); refused.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for a client that refuses it", name)
		}
		again, _ := ask(u, name, "If-None-Match", plain.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s: status %d for a browser that has it", name, again.Code)
		}
	}
}

func TestFiles_nothingElse(t *testing.T) {
	u := swaggerui.New()
	for _, name := range []string{"", "page.html", "THIRD_PARTY.md", "swagger-ui-bundle.js.gz", "../swaggerui.go", "files/start.js", "."} {
		if w, ok := ask(u, name); ok || w.Body.Len() > 0 || len(w.Header()) > 0 {
			t.Errorf("%q is served", name)
		}
	}
}

// link is what a page loads.
var link = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

// TestPage_loadsItsOwnFilesOnly follows every link of the page.
func TestPage_loadsItsOwnFilesOnly(t *testing.T) {
	u := swaggerui.New()
	w := httptest.NewRecorder()
	u.Page(w, httptest.NewRequest(http.MethodGet, swaggerui.Path, nil))
	if got := w.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	csp := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %q", csp, want)
		}
	}
	files := 0
	for _, m := range link.FindAllStringSubmatch(w.Body.String(), -1) {
		name, own := strings.CutPrefix(m[1], strings.TrimPrefix(swaggerui.Path, "/")+"/")
		switch {
		case m[1] == "openapi.json", m[1] == "data:,":
		case !own:
			t.Errorf("the page loads %s", m[1])
		default:
			files++
			if _, ok := ask(u, name); !ok {
				t.Errorf("the page loads %s, which is not there", m[1])
			}
		}
	}
	if files != 3 {
		t.Errorf("the page loads %d files", files)
	}
}
