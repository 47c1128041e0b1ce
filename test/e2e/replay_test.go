package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
)

// manifest lists the recorded books; the recordings themselves are not part of the repository.
var manifest = filepath.Join(root, "test", "recorded-manifest.json")

// recording is one line of it.
type recording struct {
	Venue, File, Endpoint, Symbol, Base, Quote string
	Line                                       int
}

// bests are what the recordings' own notes say of each book: best bid, its size, best ask, its size. Books of Binance
// have theirs in expected.json.
var bests = map[string][4]string{
	"okx/rest_books_2022-06.jsonl":               {"29692.4", "0.43986254", "29692.5", "0.10951348"},
	"okx/rest_books_doc_seqid.json":              {"41006.3", "0.30178218", "41006.8", "0.60038921"},
	"okx/derived_rest_books_btc-usdt_sz400.json": {"30250.1", "0.2742329", "30250.2", "0.0012"},
	"okx/derived_rest_books_btc-usdt_sz5.json":   {"30250.1", "0.2742329", "30250.2", "0.0012"},
	"coinbase/at_product_book_btc_usd_2026.json": {"68923.66", "0.17189468", "68923.67", "0.16987193"},
}

// Every recorded spot book, played by the simulator and asked for over HTTP, has the same best bid and ask.
func TestReplay_everyRecordedBook(t *testing.T) {
	t.Parallel()
	recorded := filepath.Join(root, "..", "shared", "recorded")
	if _, err := os.Stat(recorded); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must play the recorded payloads: %v", err)
		}
		t.Skipf("the recorded payloads are not here: %v", err)
	}
	var list struct{ Payloads []recording }
	readJSON(t, manifest, &list)
	var ofBinance map[string]json.RawMessage
	readJSON(t, filepath.Join(recorded, "binance", "expected.json"), &ofBinance)

	sim := simulate(t, "--replay="+manifest)
	g := before(t, sim).serve(t)
	played := 0
	for _, r := range list.Payloads {
		want := best(t, recorded, r, ofBinance)
		a := g.book(r.Venue, r.Base+"/"+r.Quote)
		if a.status != http.StatusOK || a.Stale || len(a.Bids) == 0 || len(a.Asks) == 0 {
			t.Errorf("%s: %v", r.File, a)
			continue
		}
		got := [4]string{a.Bids[0][0], a.Bids[0][1], a.Asks[0][0], a.Asks[0][1]}
		for i := range got {
			if !number(t, got[i]).Equal(number(t, want[i])) {
				t.Errorf("%s: best bid and ask %v, want %v", r.File, got, want)
				break
			}
		}
		played++
	}
	if played < len(bests) || played != len(list.Payloads) {
		t.Errorf("%d of %d books were played", played, len(list.Payloads))
	}
}

// best is the best bid and ask of a recording by its notes.
func best(t *testing.T, recorded string, r recording, ofBinance map[string]json.RawMessage) [4]string {
	t.Helper()
	name, err := filepath.Rel(recorded, filepath.Join(filepath.Dir(manifest), r.File))
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.ToSlash(name)
	if file, ok := strings.CutPrefix(name, "binance/"); ok {
		var want struct {
			Bid [2]string `json:"best_bid"`
			Ask [2]string `json:"best_ask"`
		}
		if err := json.Unmarshal(ofBinance[file], &want); err != nil {
			t.Fatalf("expected.json: %s: %v", file, err)
		}
		return [4]string{want.Bid[0], want.Bid[1], want.Ask[0], want.Ask[1]}
	}
	want, ok := bests[name]
	if !ok {
		t.Fatalf("%s is played, and its best bid and ask are not in this test", name)
	}
	return want
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func number(t *testing.T, text string) decimal.Decimal {
	t.Helper()
	d, err := decimal.NewFromString(text)
	if err != nil {
		t.Fatalf("%q is not a number", text)
	}
	return d
}
