package exchangesim_test

import (
	"encoding/base64"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// sleepUntil moves a bubble's clock forward, which costs no time.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }

const (
	binanceDocSecret = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j" // the official example of rest-api.md
	binanceDocKey    = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A"
	okxDocSecret     = "22582BD0CFF14C41EDBF1AB98506286D" // the docs' sample secret
)

func TestBinance_acceptsDocumentedSignatures(t *testing.T) {
	spki := "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=\n-----END PUBLIC KEY-----"
	edKey := "EXAMPLExVECTORxEXAMPLExVECTORxEXAMPLExVECTORxEXAMPLExVECTORxEXAM"
	query := "omitZeroBalances=true&recvWindow=5000&timestamp=1499827319559"
	for name, tc := range map[string]struct{ key, query string }{
		"hmac":                     {binanceDocKey, query + "&signature=807e9f33e2180fee3162aaa9fddb73c600a957ca7e8353e2c50ba2a31430a41f"},
		"hmac, bare":               {binanceDocKey, "timestamp=1499827319559&signature=2222d49722f6af5da13f6da6bfc0d7de19ca2815ebc98bbc49e4942268472f3f"},
		"hmac, upper-case hex":     {binanceDocKey, "timestamp=1499827319559&signature=2222D49722F6AF5DA13F6DA6BFC0D7DE19CA2815EBC98BBC49E4942268472F3F"},
		"ed25519, percent-encoded": {edKey, query + "&signature=P%2BpPWdWP5Er5LpoGLQbKhSXIHQJHoH7eJvpmeml4MTBwul4Q73ohS8Sed944r0V5rzyUlEMW1Lj%2Bx%2BMCFdJoAQ%3D%3D"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sleepUntil(time.UnixMilli(1499827319559))
				sim := newSim(t, exchangesim.Config{Credentials: []exchangesim.Credential{
					{Name: "doc", Venue: "binance", Kind: exchangesim.KeyHMAC, Key: binanceDocKey, Secret: binanceDocSecret},
					{Name: "ed", Venue: "binance", Kind: exchangesim.KeyEd25519, Key: edKey, Secret: spki},
				}})
				r := inMemory(t, sim.Venue("binance")).do(t.Context(), "/api/v3/account?"+tc.query, map[string]string{"X-MBX-APIKEY": tc.key})
				r.want(t, 200, `"asset":"BTC","free":"1.23456789","locked":"0.00500000"`)
			})
		})
	}
}

// The two official rows of the documents sign an order, which is not simulated; the MAC itself is checked with them.
func TestBinance_officialMACs(t *testing.T) {
	for payload, want := range map[string]string{
		"symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559":                                                 "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71",
		"symbol=%EF%BC%91%EF%BC%92%EF%BC%93%EF%BC%94%EF%BC%95%EF%BC%96&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559": "e1353ec6b14d888f1164ae9af8228a3dbd508bc82eb867db8ab6046442f33ef3",
	} {
		if got := hex.EncodeToString(exchangesim.HMACSHA256([]byte(binanceDocSecret), payload)); got != want {
			t.Errorf("%s: got %s, want %s", payload, got, want)
		}
	}
}

func TestOKX_acceptsDocumentedSignatures(t *testing.T) {
	for path, sign := range map[string]string{
		"/api/v5/account/balance":               "AkD5YszBhggtIyjDlmTy/9PpNVntel+1Lff8wh0qpQw=",
		"/api/v5/account/balance?ccy=BTC":       "HiZhvSfMtWJA3uUIVXV3a/bSXNPCWvYFXoGCVS8V4zY=",
		"/api/v5/account/balance?ccy=BTC,ETH":   "oah2EOT2Fnz1bjkgiAnuKl+zFQzDG3/nqPUqyYzArrE=",
		"/api/v5/account/balance?ccy=BTC%2CETH": "X/i/q53ENYaVFJP/x3gMqfyuIw8hS3HPa3eFxfQQFaY=",
		"/api/v5/asset/balances":                "tD2JyPoMgjlc4YSaUuw6rMf5ZQyhDkotKh9nVXDVJ4c=",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sleepUntil(time.Date(2020, 12, 8, 9, 8, 57, 715e6, time.UTC))
				c := exchangesim.Credential{Name: "doc", Venue: "okx", Kind: exchangesim.KeyHMAC, Key: "00000000-example-key", Secret: okxDocSecret, Passphrase: "example"}
				sim := newSim(t, exchangesim.Config{Credentials: []exchangesim.Credential{c}})
				header := map[string]string{
					"OK-ACCESS-KEY": c.Key, "OK-ACCESS-PASSPHRASE": c.Passphrase, "OK-ACCESS-TIMESTAMP": "2020-12-08T09:08:57.715Z", "OK-ACCESS-SIGN": sign,
				}
				o := inMemory(t, sim.Venue("okx"))
				o.do(t.Context(), path, header).want(t, 200, `"code":"0"`)
				other := "/api/v5/account/balance?ccy=SOL" // the same signature for another query
				o.do(t.Context(), other, header).want(t, 401, "50113")
			})
		})
	}
}

func TestCoinbase_acceptsDocumentedSignatures(t *testing.T) {
	esPEM := `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELJL+WyIbZdjQLk4OcQ3IRpzcRpGm
yMmyAErzatcm1uAGJOa9TsZCSRqmSxDuIdPvo823GOKO61rPAGrgBD68zA==
-----END PUBLIC KEY-----`
	edSeed := "LvGds+BFdQ3vCjWy1o8E+7k1eQdgiWQiQN65fTvPiqI4g6S91EwbYMFk9U64C7sI5CW4RugiAavqalx8pA/rOg=="
	creds := []exchangesim.Credential{
		{Name: "es", Venue: "coinbase", API: "advanced", Kind: exchangesim.KeyES256, Key: "organizations/00000000-0000-4000-8000-000000000001/apiKeys/00000000-0000-4000-8000-000000000002", Secret: esPEM},
		{Name: "ed", Venue: "coinbase", API: "advanced", Kind: exchangesim.KeyEd25519, Key: "00000000-0000-4000-8000-000000000003", Secret: edSeed},
		{Name: "ex", Venue: "coinbase", API: "exchange", Kind: exchangesim.KeyHMAC, Key: "example", Secret: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==", Passphrase: "example"},
	}
	es := "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9yZ2FuaXphdGlvbnMvMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAxL2FwaUtleXMvMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAyIiwibm9uY2UiOiIwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZiIsInR5cCI6IkpXVCJ9." +
		"eyJzdWIiOiJvcmdhbml6YXRpb25zLzAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMS9hcGlLZXlzLzAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMiIsImlzcyI6ImNkcCIsIm5iZiI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwMTIwLCJ1cmkiOiJHRVQgYXBpLmNvaW5iYXNlLmNvbS9hcGkvdjMvYnJva2VyYWdlL2FjY291bnRzIn0." +
		"Dopztla2sp0xEdQ4q4ZlgCWVx8CkySC9gIdAHaK-HeTWjtqo-d8Q44Hxv2gFLge6V066J4WQzfpaEj7foH9KPQ"
	ed := "eyJhbGciOiJFZERTQSIsImtpZCI6IjAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyIsIm5vbmNlIjoiMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYiLCJ0eXAiOiJKV1QifQ." +
		"eyJzdWIiOiIwMDAwMDAwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDMiLCJpc3MiOiJjZHAiLCJuYmYiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMDEyMCwidXJpIjoiR0VUIGFwaS5jb2luYmFzZS5jb20vYXBpL3YzL2Jyb2tlcmFnZS9hY2NvdW50cyJ9." +
		"QHQbKbOelzEPaX0xVlp2CMvzOf8ZTaan_0rd_UvYtqFe7OD8Yedug84E1DQ9FwpLuAAyxTEUc7x_1_xIGINLCA"
	synctest.Test(t, func(t *testing.T) {
		sleepUntil(time.Unix(1700000060, 0)) // in the middle of the tokens' life
		sim := newSim(t, exchangesim.Config{Credentials: creds})
		c := inMemory(t, sim.Venue("coinbase"))
		for name, token := range map[string]string{"es": es, "ed": ed} {
			bearer := map[string]string{"Authorization": "Bearer " + token}
			c.do(t.Context(), "/api/v3/brokerage/accounts?limit=250", bearer).want(t, 200, `"has_next":false`)
			c.do(t.Context(), "/api/v3/brokerage/key_permissions", bearer).want(t, 401, "Unauthorized") // another path
			elsewhere := c
			elsewhere.base = "https://127.0.0.1:1234"
			elsewhere.do(t.Context(), "/api/v3/brokerage/accounts", bearer).want(t, 401, "Unauthorized") // another host
			if got := sim.Venue("coinbase").Stats().ByCredential[name]; got != 3 {
				t.Errorf("counted %d requests of %s, want 3", got, name)
			}
		}
		sleepUntil(time.Unix(1700000126, 0))
		c.do(t.Context(), "/api/v3/brokerage/accounts", map[string]string{"Authorization": "Bearer " + es}).want(t, 401, "Unauthorized")
	})
	synctest.Test(t, func(t *testing.T) {
		sleepUntil(time.Unix(1700000000, 0))
		sim := newSim(t, exchangesim.Config{Credentials: creds})
		c := inMemory(t, sim.Venue("coinbase"))
		header := map[string]string{
			"CB-ACCESS-KEY": "example", "CB-ACCESS-PASSPHRASE": "example", "CB-ACCESS-TIMESTAMP": "1700000000",
			"CB-ACCESS-SIGN": "rGG1JqXQ+E6pZei33vupSfjDznqIYp7EiYs3JKWtKIw=",
		}
		c.do(t.Context(), "/accounts", header).want(t, 200, `"currency":"BTC"`)
		time.Sleep(31 * time.Second)
		c.do(t.Context(), "/accounts", header).want(t, 401, "request timestamp expired")
	})
	secret, err := base64.StdEncoding.DecodeString(creds[2].Secret)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"1700000000GET/orders?limit=100&product_id=BTC-USD":                                     "dk6wG5FA4UCwaO1569pMyFk7fgfaZkorf5PyvZusSgY=",
		`1700000000POST/orders{"price":"1.0","size":"1.0","side":"buy","product_id":"BTC-USD"}`: "9BFKo+O+iyq1orpEz9FK6MtOYrhEc4O2o7Bq4XtL5pE=",
		"1700000000GET/users/self/verify":                                                       "4w5N81jN+R8BEl+8gu26Lel0jalXF5uTezix+T8v9eY=",
	} {
		if got := base64.StdEncoding.EncodeToString(exchangesim.HMACSHA256(secret, text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
