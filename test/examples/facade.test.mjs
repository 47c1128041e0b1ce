// examples/ccxt and examples/freqtrade: bots on ccxt that change nothing but their URL and ccxt's own options, and get the
// simulated exchange's own books through the facade.
import { describe, it, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { demo, example, run, tidy } from './stage.mjs';

const ccxt = createRequire(example('ccxt', 'watch.mjs'))('ccxt');

/** asked is a client that notes the URLs that it asks. */
function noting(client) {
  const urls = [];
  const { fetch } = client;
  client.fetch = function (url, ...rest) {
    urls.push(url);
    return fetch.call(this, url, ...rest);
  };
  return urls;
}

describe('bots on ccxt', () => {
  let gateway, config;
  after(tidy);
  before(async () => {
    gateway = await demo();
    await gateway.live('binance', 'BTC/USDT');
    config = JSON.parse(await readFile(example('freqtrade', 'config.json'), 'utf8'));
  });

  it('ccxt: prints books and candles of each round', async () => {
    const text = await run(example('ccxt', 'watch.mjs'), [], { env: { GATEWAY_URL: gateway.public, ROUNDS: '2' } });
    const lines = text.trim().split('\n');
    assert.match(lines[0], /^\d+ markets from http/);
    assert.ok(Number(lines[0].split(' ')[0]) >= 12, lines[0]);
    assert.equal(lines.length, 1 + 2 * 2, text);
    for (const line of lines.slice(1)) {
      const [, symbol, bid, ask, closes] = /^\S+ (\S+) bid (\S+) ask (\S+) last closes (.+)$/.exec(line) ?? assert.fail(line);
      assert.match(symbol, /^(BTC|ETH)\/USDT$/);
      assert.ok(Number(bid) > 0 && Number(bid) < Number(ask), line);
      assert.equal(closes.split(' ').length, 3, line);
    }
  });

  it('freqtrade: the file is one', () => {
    assert.equal(config.dry_run, true);
    assert.equal(config.exchange.name, 'binance');
    assert.equal(config.exchange.key + config.exchange.secret, '', 'no key in an example');
    assert.equal(config.exchange.enable_ws, false, 'the facade has no streams');
    assert.deepEqual(Object.keys(config.exchange.ccxt_config).sort(), ['options', 'urls']);
    assert.equal(config.exchange.ccxt_config.urls.api.public, 'http://127.0.0.1:8080/compat/binance/api/v3');
    // What freqtrade's own schema wants of every file (its config_schema.py, SCHEMA_TRADE_REQUIRED and SCHEMA_MINIMAL_REQUIRED).
    for (const name of ['exchange', 'timeframe', 'max_open_trades', 'stake_currency', 'stake_amount', 'dry_run', 'dry_run_wallet', 'exit_pricing', 'entry_pricing', 'pairlists']) {
      assert.ok(name in config, name);
    }
    for (const side of ['entry_pricing', 'exit_pricing']) {
      assert.ok(['ask', 'bid', 'same', 'other'].includes(config[side].price_side), side);
      assert.equal(config[side].use_order_book, true, side);
    }
    for (const pair of config.exchange.pair_whitelist) assert.ok(pair.endsWith(`/${config.stake_currency}`), pair);
  });

  it('freqtrade: what it asks at its start and in its loop', async () => {
    // freqtrade gives ccxt_config to the constructor of ccxt as it is, beside the key.
    const given = structuredClone(config.exchange.ccxt_config);
    given.urls.api.public = given.urls.api.public.replace('http://127.0.0.1:8080', gateway.public);
    const client = new ccxt.binance({ apiKey: config.exchange.key, secret: config.exchange.secret, ...given });
    const urls = noting(client);

    await client.loadMarkets(true);
    for (const pair of config.exchange.pair_whitelist) assert.ok(client.market(pair).active, pair);
    const tickers = await client.fetchTickers(); // pair lists and the wallet's worth
    for (const pair of config.exchange.pair_whitelist) assert.ok(tickers[pair].last > 0, pair);
    assert.ok(Object.keys(await client.fetchBidsAsks()).length >= 12);
    for (let round = 0; round < 2; round++) {
      for (const pair of config.exchange.pair_whitelist) {
        const candles = await client.fetchOHLCV(pair, config.timeframe, undefined, 500);
        assert.ok(candles.length > 100, `${pair}: ${candles.length} candles`);
        for (let i = 1; i < candles.length; i++) assert.equal(candles[i][0] - candles[i - 1][0], 300_000, `${pair}: a gap`);
        const book = await client.fetchOrderBook(pair, 20);
        const truth = await gateway.control('GET', `/v1/book/binance?symbol=${pair.replace('/', '')}&depth=20&seq=${book.nonce}`);
        assert.deepEqual(book.bids, truth.bids.map(({ price, size }) => [Number(price), Number(size)]), pair);
        assert.deepEqual(book.asks, truth.asks.map(({ price, size }) => [Number(price), Number(size)]), pair);
        assert.ok((await client.fetchTicker(pair)).bid > 0, pair);
      }
    }
    await client.fetchTime();
    await client.fetchTrades('BTC/USDT', undefined, 50);
    const facade = `${gateway.public}/compat/binance/api/v3/`;
    assert.deepEqual(urls.filter((url) => !url.startsWith(facade)), [], 'nothing is asked elsewhere');
    assert.ok(urls.length >= 16, `${urls.length} requests`);
  });

  // The last, since the circuit stays open for a while.
  it('ccxt: with a key, and without a book while the exchange is down', async () => {
    await gateway.breaks('binance', { kind: 'maintenance', class: 'market_data' });
    try {
      // Of a pair that nobody has asked for: one that is streamed is live for as long as its stream is.
      const text = await run(example('ccxt', 'watch.mjs'), ['SOL/USDT'], { env: { GATEWAY_URL: gateway.public, GATEWAY_KEY: gateway.key, ROUNDS: '3' } });
      const refused = text.trim().split('\n').slice(1);
      assert.equal(refused.length, 3, text);
      for (const line of refused) assert.match(line, /SOL\/USDT \w+: try again later$/);
    } finally {
      await gateway.heals('binance');
    }
  });
});
