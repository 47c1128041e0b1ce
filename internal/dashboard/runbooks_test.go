package dashboard_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestRunbooks_listAndTexts(t *testing.T) {
	written, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(written) < 20 {
		t.Fatalf("%d runbooks: %v", len(written), err)
	}
	page := body(t, get(t, "/ui/runbooks/", "Accept", browser))
	text := body(t, get(t, "/ui/runbooks/", "Accept", "*/*"))
	for _, file := range written {
		path := "/ui/runbooks/" + filepath.Base(file)
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := get(t, path, "Accept", browser)
		if got := body(t, r); r.StatusCode != http.StatusOK || got != string(want) {
			t.Errorf("%s: status %d, %d bytes, want the %d of the file", path, r.StatusCode, len(got), len(want))
		}
		if got := r.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("%s: Content-Type %q", path, got)
		}
		if !strings.Contains(page, `href="`+path+`"`) {
			t.Errorf("the list has no link to %s", path)
		}
		if !regexp.MustCompile(regexp.QuoteMeta(path) + ` +(critical|warning|info) +\S.*\.\n`).MatchString(text) {
			t.Errorf("the list does not say how urgent %s is and what has happened", path)
		}
	}
	if n := strings.Count(page, "<tr>") - 1; n != len(written) {
		t.Errorf("the list has %d lines for %d runbooks", n, len(written))
	}
}

func TestRunbooks_anythingElseIsNotThere(t *testing.T) {
	for _, name := range []string{"Nothing.md", "GatewayCircuitOpen", "embed.go", "..%2fREADME.md", "%2e%2e%2f%2e%2e%2fgo.mod", "a/b", "*.md"} {
		if r := get(t, "/ui/runbooks/"+name); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", name, r.StatusCode)
		}
	}
}

func TestRunbooks_theOnesThatThePageNamesExist(t *testing.T) {
	script, err := os.ReadFile("assets/drawer.js")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`runbook\('(\w+)'\)`).FindAllStringSubmatch(string(script), -1)
	if len(named) == 0 {
		t.Fatal("the drawer names no runbook")
	}
	for _, m := range named {
		if r := get(t, "/ui/runbooks/"+m[1]+".md"); r.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", m[1], r.StatusCode)
		}
	}
	if page := body(t, get(t, "/ui/plain", "Accept", browser)); !strings.Contains(page, `href="/ui/runbooks/"`) {
		t.Error("the plain page does not lead to the runbooks")
	}
	if page := body(t, get(t, "/", "Accept", browser)); !strings.Contains(page, `name="runbooks" content="/ui/runbooks/"`) {
		t.Error("the page does not know where the runbooks are")
	}
}
