package exchangesim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// madeUpID is a UUID of version 5's looks that belongs to a text.
func madeUpID(text string) string {
	a, b := mix(1, hashText(text)), mix(2, hashText(text))
	return fmt.Sprintf("%08x-%04x-5%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}

// atAccounts pages through the wallets: limit 49 unless asked, at most 250; a cursor until has_next is false.
func (cb *coinbase) atAccounts(c *call) answer {
	held := cb.v.holdings(c.key.Name, "trading")
	limit, ok := countParam(c, "limit", 49)
	if !ok || limit == 0 {
		return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "invalid limit")
	}
	limit = min(limit, 250)
	from := 0
	if cursor := c.query.Get("cursor"); cursor != "" {
		if from, ok = readCursor(cursor); !ok || from > len(held) {
			return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "invalid cursor")
		}
	}
	to := min(from+limit, len(held))
	rows := []object{}
	for _, h := range held[from:to] {
		rows = append(rows, cb.atAccountInfo(c, h))
	}
	out := object{"accounts": rows, "has_next": to < len(held), "cursor": "", "size": len(rows)}
	if to < len(held) {
		out["cursor"] = base64.RawURLEncoding.EncodeToString([]byte("after:" + strconv.Itoa(to)))
	}
	return jsonAnswer(http.StatusOK, out)
}

func readCursor(cursor string) (int, bool) {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	text, ok := strings.CutPrefix(string(data), "after:")
	if err != nil || !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0
}

func (cb *coinbase) atAccountInfo(c *call, h holding) object {
	kind := "ACCOUNT_TYPE_CRYPTO"
	if h.asset == "USD" || h.asset == "EUR" || h.asset == "GBP" {
		kind = "ACCOUNT_TYPE_FIAT"
	}
	value := func(a amount) object { return object{"value": a.plain(), "currency": h.asset} }
	return object{
		"uuid": madeUpID(c.key.Name + h.asset), "name": h.asset + " Wallet", "currency": h.asset, "available_balance": value(h.free), "hold": value(h.locked),
		"default": true, "active": true, "ready": true, "type": kind, "created_at": "2023-01-04T06:20:06.456Z", "updated_at": "2023-01-04T06:20:07.181Z",
		"deleted_at": nil, "retail_portfolio_id": madeUpID(c.key.Name), "platform": "ACCOUNT_PLATFORM_CONSUMER",
	}
}

func (cb *coinbase) atAccount(c *call) answer {
	for _, h := range cb.v.holdings(c.key.Name, "trading") {
		if madeUpID(c.key.Name+h.asset) == c.part {
			return jsonAnswer(http.StatusOK, object{"account": cb.atAccountInfo(c, h)})
		}
	}
	return atError(http.StatusNotFound, "NOT_FOUND", "account not found")
}

func (cb *coinbase) atPermissions(c *call) answer {
	return jsonAnswer(http.StatusOK, object{
		"can_view": true, "can_trade": false, "can_transfer": false, "portfolio_uuid": madeUpID(c.key.Name), "portfolio_type": "DEFAULT",
	})
}

// atSummary is what ccxt asks for fees when it has a key.
func (cb *coinbase) atSummary(*call) answer {
	return jsonAnswer(http.StatusOK, object{
		"total_volume": 0, "total_fees": 0, "total_balance": "", "has_promo_fee": false, "margin_rate": nil, "goods_and_services_tax": nil,
		"fee_tier": object{
			"pricing_tier": "Intro 1", "usd_from": "0", "usd_to": "10000", "taker_fee_rate": "0.012", "maker_fee_rate": "0.006", "aop_from": "", "aop_to": "",
		},
		"advanced_trade_only_volume": 0, "advanced_trade_only_fees": 0, "coinbase_pro_volume": 0, "coinbase_pro_fees": 0,
	})
}

// exAccounts is one bare array with every currency, zeros included; 16 decimals, but "0" for an available balance of zero.
func (cb *coinbase) exAccounts(c *call) answer {
	rows := []object{}
	for _, h := range cb.v.holdings(c.key.Name, "trading") {
		available := "0"
		if !h.free.isZero() {
			available = h.free.fixed(16)
		}
		rows = append(rows, object{
			"id": madeUpID(c.key.Name + h.asset), "currency": h.asset, "balance": h.total().fixed(16), "hold": h.locked.fixed(16), "available": available,
			"profile_id": madeUpID(c.key.Name), "trading_enabled": true, "pending_deposit": "0.0000000000000000", "display_name": h.asset,
		})
	}
	return jsonAnswer(http.StatusOK, rows)
}
