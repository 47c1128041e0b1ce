#!/usr/bin/env node
// watch.mjs: a ccxt bot that reads Binance through the gateway. Nothing of it is the gateway's but the URL and two of ccxt's own
// options; everything else is as before.
//
//   bin/gateway demo                                                # in one terminal
//   npm ci --prefix examples/ccxt && examples/ccxt/watch.mjs        # in another
//
// GATEWAY_URL is http://127.0.0.1:8080 if it is not set; GATEWAY_KEY is a key of the gateway, needed only beyond loopback;
// ROUNDS is how often it asks, without end if it is not set.
import ccxt from 'ccxt';
import { setTimeout as wait } from 'node:timers/promises';

const gateway = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080';
const key = process.env.GATEWAY_KEY;
const rounds = Number(process.env.ROUNDS ?? Infinity);
const symbols = process.argv.slice(2).length ? process.argv.slice(2) : ['BTC/USDT', 'ETH/USDT'];

const exchange = new ccxt.binance({
  // sapi is for fetchStatus. A signed call below it, which this bot does not make, would be refused: 501 with Binance's own address.
  urls: { api: { public: `${gateway}/compat/binance/api/v3`, sapi: `${gateway}/compat/binance/sapi/v1` } },
  // Spot alone: the facade has no futures. No currencies: Binance tells them to signed calls only.
  options: { fetchMarkets: ['spot'], fetchCurrencies: false },
  // The gateway's key, not one of Binance. ccxt would send it with signed calls, too, which go to Binance: this bot makes none.
  headers: key ? { Authorization: `Bearer ${key}` } : {},
});

// One line for a symbol. What the gateway refuses has the class that ccxt gives to Binance's own refusals, so that a bot
// needs no new case: an exchange that is down is an OperationFailed, and worth another try.
async function line(symbol) {
  try {
    const book = await exchange.fetchOrderBook(symbol, 5);
    const [bid, ask] = [book.bids[0][0], book.asks[0][0]];
    const candles = await exchange.fetchOHLCV(symbol, '1m', undefined, 3);
    return `${symbol} bid ${bid} ask ${ask} last closes ${candles.map((c) => c[4]).join(' ')}`;
  } catch (err) {
    if (err instanceof ccxt.OperationFailed) return `${symbol} ${err.constructor.name}: try again later`;
    throw err;
  }
}

await exchange.loadMarkets();
const status = await exchange.fetchStatus().then((s) => s.status, (err) => {
  if (err instanceof ccxt.OperationFailed) return 'not known'; // the gateway could not read what Binance announces
  throw err;
});
console.log(`${Object.keys(exchange.markets).length} markets from ${gateway}, status ${status}`);
for (let round = 0; round < rounds; round++) {
  if (round > 0) await wait(1000);
  for (const text of await Promise.all(symbols.map(line))) console.log(new Date().toISOString(), text);
}
