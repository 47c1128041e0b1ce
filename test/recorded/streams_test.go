package recorded

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/internal/market"
)

// played are the recorded streams of channels that are used.
func played() map[string]func(t *testing.T, path string) {
	return map[string]func(*testing.T, string){
		"binance/ws/binance_2021-10-12_nkn_blz_rune.jsonl":          session("NKN/USDT", "BLZ/ETH", "RUNE/EUR"),
		"binance/ws/binanceus_2021-10-12_comp_omg.jsonl":            session("COMP/USDT", "OMG/BUSD"),
		"binance/ws/derived_nknusdt_1000ms_straddle.jsonl":          straddle("NKN/USDT"),
		"binance/ws/trxusdt_2025-03-04_depth100ms_usec_part1.jsonl": session("TRX/USDT"),
		"okx/ws_btc-usdt_2022-05.jsonl":                             playOKX2022,
		"okx/derived_ws_books_btc-usdt_2026wire.jsonl":              playOKX2026,
		"okx/ws_books_near-usdt_2025-12.jsonl":                      playOKXNear,
		"okx/ws_misc_2025-12.jsonl":                                 playOKXMisc,
		"okx/ws_bbo_books5_tickers_2022.jsonl":                      playOKXOthers,
		"okx/ws_market_btc-usdt_2026-08.jsonl":                      playOKXOthers,
		"okx/ws_control_events.jsonl":                               playOKXControl,
		"binance/ws/misc_spot_messages.jsonl":                       playBinanceMisc,
		"binance/ws/control_messages.jsonl":                         playBinanceControl,
		"coinbase/at_ws_l2_derived_clean.jsonl":                     playCoinbaseClean,
		"coinbase/at_ws_session_start_2026.jsonl":                   playCoinbaseStart,
		"coinbase/at_ws_frames_docs_style_2026.jsonl":               playCoinbaseDocs,
		"coinbase/at_ws_frames_2024.jsonl":                          playCoinbase2024,
	}
}

// unused are the others, and why they are not played.
func unused() map[string]string {
	const exchangeAPI = "a stream of Coinbase Exchange: its public depth has no sequence, and the streams of Advanced Trade are used"
	return map[string]string{
		"binance/ws/trxusdt_2025-03-04_trade_usec.jsonl":     "trades",
		"binance/ws/user_balance_events.jsonl":               "events of an account: balances are read by REST",
		"okx/ws_account_empty_2026-03.json":                  "events of an account: balances are read by REST",
		"coinbase/exchange_ws_control_messages.jsonl":        exchangeAPI,
		"coinbase/exchange_ws_heartbeat_2020.jsonl":          exchangeAPI,
		"coinbase/exchange_ws_level2_auth_2025.jsonl":        exchangeAPI,
		"coinbase/exchange_ws_level2_batch_2025.jsonl":       exchangeAPI,
		"coinbase/exchange_ws_matches_2025.jsonl":            exchangeAPI,
		"coinbase/exchange_ws_status_2025.jsonl":             exchangeAPI,
		"coinbase/exchange_ws_stream_2021_a.jsonl":           exchangeAPI,
		"coinbase/exchange_ws_stream_2021_b.jsonl":           exchangeAPI,
		"coinbase/exchange_ws_subscribe_requests_2021.jsonl": exchangeAPI,
		"coinbase/exchange_ws_ticker_2025.jsonl":             exchangeAPI,
	}
}

// TestStreams plays every recorded stream. A stream of which this package does not know what to do with it fails.
func TestStreams(t *testing.T) {
	streams, left := played(), unused()
	for _, path := range recordedStreams(t) {
		replay, reason := streams[path], left[path]
		delete(streams, path)
		delete(left, path)
		switch {
		case replay == nil && reason == "":
			t.Errorf("%s is neither played nor known to be of no use", path)
		case replay != nil && reason != "":
			t.Errorf("%s is played, and said not to be", path)
		case replay != nil:
			play(t, path, func(t *testing.T) { replay(t, path) })
		}
	}
	for path := range streams {
		t.Errorf("%s is not there", path)
	}
	for path := range left {
		t.Errorf("%s is not there", path)
	}
}

// recordedStreams are the files that hold messages of streams of the gateway's exchanges. What belongs to one of them (when its lines came, what they
// lead to) is none.
func recordedStreams(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path, err = filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		if exchange, _, _ := strings.Cut(path, "/"); !slices.Contains(app.ExchangeIDs(), market.ExchangeID(exchange)) {
			return nil // of an exchange that the gateway does not have
		}
		for _, companion := range []string{".recv.txt", ".expected.jsonl", ".final.json"} {
			if strings.HasSuffix(path, companion) {
				return nil
			}
		}
		if strings.Contains(path, "/ws/") || strings.Contains(path, "ws_") {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// play runs a test beside others: what they wait for is the pace of messages, not the machine.
func play(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}
