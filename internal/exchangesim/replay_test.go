package exchangesim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange-gateway/internal/exchangesim"
)

func replaying(t *testing.T, path string) *exchangesim.Sim {
	t.Helper()
	m, err := exchangesim.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	return newSim(t, exchangesim.Config{Replay: m, Unlimited: true})
}

func TestReplay_servesPayloadsAsRecorded(t *testing.T) {
	sim := replaying(t, "testdata/manifest.json")
	b := inMemory(t, sim.Venue("binance"))
	first := `{"asks":[["101.50000000","1.00000000"],["102.00000000","2.00000000"],["103.00000000","3.00000000"]],"bids":[["101.00000000","4.00000000"],["100.50000000","5.00000000"],["100.00000000","6.00000000"]],"lastUpdateId":7001}`
	if r := b.get("/api/v3/depth?symbol=BTCUSDT"); r.body != first {
		t.Errorf("got %s, want the bytes of the recording", r.body)
	}
	for range 2 { // the last one of a symbol stays
		b.get("/api/v3/depth?symbol=BTCUSDT").want(t, 200, `"lastUpdateId":7002`)
	}
	b.get("/api/v3/depth?symbol=ETHUSDT").want(t, 200, `"lastUpdateId"`) // simulated as before
	b.get("/api/v3/exchangeInfo?symbol=BTCUSDT").want(t, 200, `"tickSize":"0.10000000"`)

	o := inMemory(t, sim.Venue("okx"))
	o.get("/api/v5/market/books?instId=MADEUP-USDT").want(t, 200, `{"code":"0","msg":"","data":[{"asks":[["20.5","30","0","1"]],"bids":[["20.1","10","0","3"]],"ts":"1600000000000"}]}`)
	o.get("/api/v5/public/instruments?instType=SPOT&instId=MADEUP-USDT").want(t, 200, `"state":"live"`)

	c := inMemory(t, sim.Venue("coinbase"))
	c.get("/api/v3/brokerage/market/product_book?product_id=BTC-USD&limit=1").want(t, 200, `"bids": [{"price": "64000.1", "size": "0.5"}], "asks"`)
	c.get("/products/TINY-BTC/book?level=2").want(t, 200, `"bids": [["0.00000012", "900000", 2]], "asks": []`)
	c.get("/products/TINY-BTC").want(t, 200, `"quote_increment":"0.00000001"`)
	c.get("/time").want(t, 200, `"epoch": 1600000000`)
	if _, err := sim.Venue("coinbase").Book("TINY-BTC", testTime, 5); err == nil {
		t.Error("a recorded instrument has no simulated book")
	}
}

func TestReplay_startsAgainFromTheFirst(t *testing.T) {
	for range 2 {
		b := inMemory(t, replaying(t, "testdata/manifest.json").Venue("binance"))
		b.get("/api/v3/depth?symbol=BTCUSDT&limit=1").want(t, 200, `{"asks":[["101.50000000","1.00000000"]],"bids":[["101.00000000","4.00000000"]],"lastUpdateId":7001}`)
	}
}

func TestReadManifest_refusesNonsense(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("book.jsonl", "{\"a\":[1]}\nnot json\n")
	entry := func(fields string) string {
		return `{"payloads":[{"venue":"okx","endpoint":"/api/v5/public/time",` + fields + `}]}`
	}
	for text, part := range map[string]string{
		`{}`:                         "no payloads",
		`{"payloads":[{"veneu":1}]}`: "unknown field",
		`{"payloads":[{"venue":"kraken","endpoint":"/","file":"book.jsonl"}]}`:  "no venue",
		`{"payloads":[{"venue":"okx","endpoint":"/nope","file":"book.jsonl"}]}`: "no endpoint",
		entry(`"file":"missing.json"`):                                          "missing.json",
		entry(`"file":"book.jsonl"`):                                            "not one JSON document",
		entry(`"file":"book.jsonl","line":2`):                                   "not one JSON document",
		entry(`"file":"book.jsonl","line":9`):                                   "no line 9",
		entry(`"file":"book.jsonl","line":1,"pointer":"/b"`):                    `no field "b"`,
		entry(`"file":"book.jsonl","line":1,"pointer":"/a/1"`):                  `no element "1"`,
		entry(`"file":"book.jsonl","line":1,"pointer":"a"`):                     "does not start with /",
		entry(`"file":"book.jsonl","line":1,"base":"X"`):                        "go together",
	} {
		m, err := exchangesim.ReadManifest(write("m.json", text))
		if err == nil {
			_, err = exchangesim.New(exchangesim.Config{Replay: m})
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %s", text, err, part)
		}
	}
}

// TestReplay_recordedManifest plays every book of the recorded payloads beside the repository.
func TestReplay_recordedManifest(t *testing.T) {
	if _, err := os.Stat("../../../shared/recorded"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the recorded payloads are missing at ../shared/recorded")
		}
		t.Skip("the recorded payloads are not at ../shared/recorded")
	}
	const manifest = "../../test/recorded-manifest.json"
	sim := replaying(t, manifest)
	var m exchangesim.Manifest
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	seen, files := map[string]bool{}, map[string]bool{}
	for _, p := range m.Payloads {
		if seen[p.Venue+p.Symbol] || p.Symbol == "" {
			t.Errorf("%s: the symbol %q is not its own", p.File, p.Symbol)
		}
		seen[p.Venue+p.Symbol], files[filepath.Base(p.File)] = true, true
		ask := map[string]string{"binance": "?limit=5000&symbol=", "okx": "?sz=400&instId=", "coinbase": "?limit=1000&product_id="}[p.Venue]
		c := inMemory(t, sim.Venue(p.Venue))
		r := c.get(p.Endpoint + ask + p.Symbol)
		recorded, err := os.ReadFile(filepath.Join("../../test", p.File))
		if err != nil {
			t.Fatal(err)
		}
		if r.status != 200 || !strings.Contains(string(recorded), r.body) {
			t.Errorf("%s: %d %.100s is not what was recorded", p.File, r.status, r.body)
		}
		one := c.get(p.Endpoint + strings.NewReplacer("5000", "1", "400", "1", "1000", "1").Replace(ask) + p.Symbol)
		if !json.Valid([]byte(one.body)) || len(one.body) > len(r.body) {
			t.Errorf("%s: cut to one level it is %.200s", p.File, one.body)
		}
		list := map[string]string{"binance": "/api/v3/exchangeInfo", "okx": "/api/v5/public/instruments?instType=SPOT", "coinbase": "/api/v3/brokerage/market/products"}[p.Venue]
		if body := c.get(list).body; !strings.Contains(body, `"`+p.Symbol+`"`) {
			t.Errorf("%s: %s is not listed", p.File, p.Symbol)
		}
	}
	depths, err := filepath.Glob("../../../shared/recorded/binance/rest/depth_*.json")
	if err != nil || len(depths) == 0 {
		t.Fatalf("no recorded depths: %v", err)
	}
	for _, d := range depths {
		if !files[filepath.Base(d)] {
			t.Errorf("%s is not in the manifest", d)
		}
	}
}
