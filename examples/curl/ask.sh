#!/usr/bin/env bash
# ask.sh: what a bot asks a gateway, with curl alone.
#
#   bin/gateway demo                              # in one terminal; it prints a key
#   GATEWAY_KEY=gw_... examples/curl/ask.sh       # in another
#
# GATEWAY_URL is http://127.0.0.1:8080 if it is not set, EXCHANGE is okx, SYMBOL is BTC/USDT.
set -euo pipefail
gateway=${GATEWAY_URL:-http://127.0.0.1:8080}
exchange=${EXCHANGE:-okx}
symbol=${SYMBOL:-BTC/USDT}
second=binance
[ "$exchange" != binance ] || second=okx

# The key goes into a header that curl reads from a file of its own: on the command line every user of the machine would see it.
# Without a key market data is free on loopback, and balances are not to be had.
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT
[ -z "${GATEWAY_KEY:-}" ] || printf 'Authorization: Bearer %s\n' "$GATEWAY_KEY" >"$headers"

# ask TITLE PATH [PARAMETER=VALUE...] prints the status and the body. An error has a body, too, which says what is wrong and when
# to ask again, so that curl is not told to fail on one. The bound of 30 s is above the longest that the gateway takes.
ask() {
  local title=$1 path=$2 parameters=()
  shift 2
  for parameter in "$@"; do parameters+=(--data-urlencode "$parameter"); done
  printf '\n# %s\n' "$title"
  curl --silent --show-error --max-time 30 --header "@$headers" --get "${parameters[@]}" --write-out '\n%{http_code}\n' "$gateway$path"
}

# Two levels of each side. `stale` says whether the exchange vouches for it now; if not, `freshness` says how old it is and why.
ask "a book, live or not" "/v1/exchanges/$exchange/orderbook" "symbol=$symbol" depth=2

# A book that is older than a bot can use is an error (503, book_too_stale or the exchange's own) instead.
ask "a book of at most 2 s" "/v1/exchanges/$exchange/orderbook" "symbol=$symbol" depth=2 max_age_ms=2000

# The same for a bot that takes nothing but live ones, however long that takes within the deadline.
ask "a live book" "/v1/exchanges/$exchange/orderbook" "symbol=$symbol" depth=2 require=live

# In ccxt's structure, with numbers. A book of over 5 s is an error there, as a ccxt bot does not look for a label.
ask "a ticker in ccxt's form" "/v1/exchanges/$exchange/ticker" "symbol=$symbol" format=ccxt

# The middle of the first exchange, in your order, that can answer. `fallback` says that it is not the first.
ask "a price, with a second exchange to fall back on" /v1/price "symbol=$symbol" "exchanges=$exchange,$second"

# A balance is live or an error, never old. It needs a key with the scope account:read.
ask "a balance" "/v1/exchanges/$exchange/balance"

# Every code that an error can have, and what to do about it, is at /v1/errors; the whole contract at /openapi.json.
ask "a parameter that is mistyped" "/v1/exchanges/$exchange/orderbook" "symbol=$symbol" max_age=2000

# The book as it changes. curl ends after 3 s (its code 28); a bot goes on, and comes back with the id of the last event.
printf '\n# the book as it changes\n'
curl --silent --no-buffer --max-time 3 --header "@$headers" --get --data-urlencode "symbol=$symbol" --data depth=1 \
  "$gateway/v1/stream/orderbook?exchange=$exchange" || [ $? -eq 28 ]
