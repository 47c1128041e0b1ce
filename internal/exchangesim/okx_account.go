package exchangesim

import (
	"net/http"
	"slices"
	"strings"
)

// currencies reads ccy: at most 20 codes; nil means all.
func okxCurrencies(c *call) ([]string, answer, bool) {
	text := c.query.Get("ccy")
	if text == "" {
		return nil, answer{}, true
	}
	list := strings.Split(text, ",")
	if len(list) > 20 {
		return nil, okxError(http.StatusBadRequest, "51000", "Parameter ccy error."), false
	}
	return list, answer{}, true
}

// okxHoldings are the non-zero holdings that were asked for: OKX leaves out zero rows.
func (o *okx) holdings(c *call, wallet string) ([]holding, answer, bool) {
	want, a, ok := okxCurrencies(c)
	if !ok {
		return nil, a, false
	}
	var out []holding
	for _, h := range o.v.holdings(c.key.Name, wallet) {
		if !h.isZero() && (want == nil || slices.Contains(want, h.asset)) {
			out = append(out, h)
		}
	}
	return out, answer{}, true
}

// usd values a holding through the USDT pair; zero if there is none.
func (o *okx) usd(c *call, h holding) amount {
	if h.asset == "USDT" || h.asset == "USD" || h.asset == "USDC" {
		return h.equity()
	}
	if p, ok := o.v.pairs[h.asset+"-USDT"]; ok && !p.recorded {
		return h.equity().mul(p.tick.amount(p.mid(c.now)))
	}
	return amountOf(0)
}

// balance is the trading account in spot mode: many fields are "" there. A currency that is owed has those of a debt.
func (o *okx) balance(c *call) answer {
	held, a, ok := o.holdings(c, "trading")
	if !ok {
		return a
	}
	details, sum := []object{}, amountOf(0)
	changed := msText(c.now.AddDate(0, -3, 0)) // not the time of the answer
	for _, h := range held {
		value := o.usd(c, h)
		sum = sum.add(value)
		row := object{
			"ccy": h.asset, "availBal": h.free.plain(), "frozenBal": h.locked.plain(), "ordFrozen": h.locked.plain(), "cashBal": h.equity().plain(),
			"eq": h.equity().plain(), "eqUsd": value.plain(), "disEq": value.plain(), "availEq": "", "uTime": changed, "collateralEnabled": false,
			"spotBal": h.total().plain(), "fixedBal": "0", "isoEq": "0", "rewardBal": "0", "smtSyncEq": "0", "spotCopyTradingEq": "0",
			"spotIsoBal": "0", "stgyEq": "0", "twap": "0", "upl": "0", "notionalLever": "0",
		}
		for _, empty := range []string{
			"accAvgPx", "borrowFroz", "clSpotInUseAmt", "crossLiab", "imr", "interest", "isoLiab", "isoUpl", "liab", "maxLoan", "maxSpotInUseAmt", "mgnRatio",
			"mmr", "openAvgPx", "spotInUseAmt", "spotUpl", "spotUplRatio", "totalPnl", "totalPnlRatio", "uplLiab",
		} {
			row[empty] = ""
		}
		if !h.debt.isZero() { // only an account that can borrow has these
			row["liab"], row["crossLiab"], row["isoLiab"], row["interest"] = h.debt.plain(), h.debt.plain(), "0", "0"
		}
		details = append(details, row)
	}
	top := object{"totalEq": sum.plain(), "isoEq": "0", "uTime": msText(c.now), "details": details}
	for _, empty := range []string{
		"adjEq", "availEq", "borrowFroz", "imr", "mgnRatio", "mmr", "notionalUsd", "notionalUsdForBorrow", "notionalUsdForFutures",
		"notionalUsdForOption", "notionalUsdForSwap", "ordFroz", "upl",
	} {
		top[empty] = ""
	}
	return okxData([]object{top})
}

func (o *okx) funding(c *call) answer {
	held, a, ok := o.holdings(c, "funding")
	if !ok {
		return a
	}
	rows := []object{}
	for _, h := range held {
		rows = append(rows, object{"ccy": h.asset, "bal": h.total().plain(), "availBal": h.free.plain(), "frozenBal": h.locked.plain()})
	}
	return okxData(rows)
}
