package binance

import (
	"errors"
	"strings"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// errMissing is an answer that is JSON but not what was asked for.
var errMissing = errors.New("a field is missing")

// microseconds is from where on an epoch counts microseconds: 1e14 milliseconds are the year 5138.
const microseconds = 1e14

// stamp is a time on the wire: milliseconds, or the microseconds that can be asked for. Zero and less are no time.
func stamp(epoch int64) time.Time {
	switch {
	case epoch <= 0:
		return time.Time{}
	case epoch >= microseconds:
		return time.UnixMicro(epoch)
	}
	return time.UnixMilli(epoch)
}

// readUsage reads how much of a limit the exchange says is used. /api and /sapi count apart, each under its own name.
func readUsage(res *exchange.Response) {
	for _, h := range [...]struct {
		name  string
		limit market.LimitID
	}{{"X-Mbx-Used-Weight-1m", limitWeight}, {"X-Sapi-Used-Ip-Weight-1m", limitSAPI}} {
		if used, ok := count(res.Header.Get(h.name)); ok {
			res.Usage = append(res.Usage, market.Usage{Limit: h.limit, Used: used})
		}
	}
}

// maxCount bounds a reported use: the largest limit is 300,000.
const maxCount = 1_000_000_000

// count reads a small natural number.
func count(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || n > maxCount {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}

// maxMessage is the most bytes of an announcement that are shown.
const maxMessage = 200

// clip cuts text to maxMessage bytes without leaving half a character.
func clip(s string) string {
	s = market.Straight(strings.ToValidUTF8(s, ""))
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "")
}
