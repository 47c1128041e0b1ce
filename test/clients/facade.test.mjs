// ccxt, unchanged but for its URLs and its own options, on the gateway's facade: it must read the simulated exchange's books
// and figures, and be refused as Binance refuses.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Gateway, ccxt, checkedBook, exactly } from './gateway.mjs';

describe('the facade in Binance\'s dialect', () => {
  let gateway, client, direct;
  before(async () => {
    gateway = await Gateway.start();
    client = gateway.ccxt();
    direct = gateway.direct();
    await direct.loadMarkets();
  });
  after(() => gateway?.stop());

  const checked = (symbol, limit) => checkedBook(gateway, client, symbol, limit);

  it('loadMarkets', async () => {
    const markets = await client.loadMarkets();
    assert.ok(Object.keys(markets).length >= 15);
    assert.deepEqual(markets, direct.markets, 'the same markets as the exchange itself has');
    assert.equal(client.market('BTC/USDT').precision.price, 0.01);
    assert.equal(client.market('HALT/USDT').active, false);
  });

  it('fetchOrderBook of every market', async () => {
    for (const symbol of client.symbols.filter((s) => client.market(s).active)) await checked(symbol, 20);
  });

  it('fetchOrderBook of every depth', async () => {
    for (const limit of [undefined, 1, 5, 10, 100, 101, 500, 1000]) {
      const book = await checked('BTC/USDT', limit);
      assert.ok(book.bids.length <= (limit ?? 100), 'no more levels than were asked for');
    }
    const whole = await checked('BTC/USDT', 5000);
    assert.ok(whole.bids.length <= 1000, 'the gateway has 1,000 levels at most');
  });

  it('digits are the exchange\'s own', async () => {
    const { bids, lastUpdateId } = await client.publicGetDepth({ symbol: 'BTCUSDT', limit: 1 });
    assert.match(bids[0][0], /^[0-9]+\.[0-9]{8}$/);
    const truth = await gateway.truth('BTCUSDT', 1, { nonce: lastUpdateId });
    assert.deepEqual(bids[0].map(Number), truth.bids[0]);
  });

  it('fetchTicker', async () => {
    for (const symbol of ['BTC/USDT', 'SHIB/USDT']) {
      await client.fetchOrderBook(symbol, 5); // so that a book is held
      const t = await client.fetchTicker(symbol);
      const seen = await gateway.quotes(t.info.symbol, 4000);
      assert.ok(seen.has(`${t.bid},${t.bidVolume} ${t.ask},${t.askVolume}`), `${t.bid} ${t.ask} is not a book of the last seconds`);
      assert.ok(t.last > 0 && t.low <= t.last && t.last <= t.high && t.baseVolume > 0);
      assert.ok(Math.abs(Date.now() - t.timestamp) < 10_000, t.datetime);
    }
  });

  it('fetchBidsAsks of one, several, all', async () => {
    const one = await client.publicGetTickerBookTicker({ symbol: 'ETHUSDT' });
    const seen = await gateway.quotes('ETHUSDT', 4000);
    assert.ok(seen.has(`${Number(one.bidPrice)},${Number(one.bidQty)} ${Number(one.askPrice)},${Number(one.askQty)}`));
    assert.deepEqual(Object.keys(await client.fetchBidsAsks(['BTC/USDT', 'ETH/BTC'])).sort(), ['BTC/USDT', 'ETH/BTC']);
    assert.equal(Object.keys(await client.fetchBidsAsks()).length, client.symbols.length);
  });

  it('fetchTickers and fetchLastPrices', async () => {
    const all = await client.fetchTickers();
    assert.equal(Object.keys(all).length, client.symbols.length);
    assert.deepEqual(Object.keys(await client.fetchTickers(['BTC/USDT', 'ETH/USDT'])).sort(), ['BTC/USDT', 'ETH/USDT']);
    const prices = await client.fetchLastPrices();
    assert.equal(Object.keys(prices).length, client.symbols.length);
    assert.ok(Math.abs(prices['BTC/USDT'].price / all['BTC/USDT'].last - 1) < 0.01);
    const mini = await client.publicGetTicker24hr({ symbol: 'BTCUSDT', type: 'MINI' });
    assert.ok(mini.lastPrice && mini.bidPrice === undefined);
  });

  it('fetchOHLCV', async () => {
    const hour = 3_600_000;
    const since = Math.floor(Date.now() / hour - 30) * hour;
    for (const [timeframe, from, limit] of [['1m', since, 1000], ['1h', since, 24], ['1d', since - 400 * 24 * hour, 300]]) {
      const rows = await client.fetchOHLCV('BTC/USDT', timeframe, from, limit);
      assert.equal(rows.length, limit);
      assert.deepEqual(rows, await direct.fetchOHLCV('BTC/USDT', timeframe, from, limit), timeframe);
    }
    const latest = await client.fetchOHLCV('ETH/USDT', '5m');
    assert.equal(latest.length, 500);
    assert.ok(Date.now() - latest.at(-1)[0] < 10 * 60_000);
  });

  it('fetchTrades', async () => {
    const since = Date.now() - 600_000;
    const some = (c) => c.fetchTrades('BTC/USDT', since, 50);
    const trades = await some(client);
    assert.equal(trades.length, 50);
    assert.deepEqual(trades, await some(direct));
    const plain = await client.fetchTrades('BTC/USDT', undefined, 10, { fetchTradesMethod: 'publicGetTrades' });
    assert.ok(plain.length === 10 && Date.now() - plain.at(-1).timestamp < 10_000);
    const average = await client.publicGetAvgPrice({ symbol: 'BTCUSDT' });
    assert.ok(Math.abs(Number(average.price) / plain.at(-1).price - 1) < 0.01);
  });

  it('fetchTime, fetchStatus, ping', async () => {
    assert.ok(Math.abs(await client.fetchTime() - Date.now()) < 5000);
    assert.equal((await client.fetchStatus()).status, 'ok');
    assert.deepEqual(await client.publicGetPing(), {});
  });

  it('the examples ask the facade for the status, too', async () => {
    const example = (path) => readFileSync(new URL(`../../examples/${path}`, import.meta.url), 'utf8');
    const { exchange } = JSON.parse(example('freqtrade/config.json').replaceAll('http://127.0.0.1:8080', gateway.public));
    const bot = new ccxt.binance(exchange.ccxt_config);
    const asked = [], fetched = bot.fetch.bind(bot);
    bot.fetch = (url, ...more) => { asked.push(url); return fetched(url, ...more); };
    assert.equal((await bot.fetchStatus()).status, 'ok');
    await bot.fetchOrderBook('BTC/USDT', 5);
    assert.ok(asked.length >= 3 && asked.every((url) => url.startsWith(`${gateway.facade}/`)), asked.join(' '));
    assert.ok(example('ccxt/watch.mjs').includes('sapi: `${gateway}/compat/binance/sapi/v1`'));
  });

  it('refuses what is wrong as Binance does', async () => {
    await assert.rejects(client.publicGetDepth({ symbol: 'NOPEUSDT' }), exactly(ccxt.BadSymbol));
    await assert.rejects(client.publicGetKlines({ symbol: 'NOPEUSDT', interval: '1m' }), exactly(ccxt.BadSymbol));
    await assert.rejects(client.publicGetDepth({ symbol: 'BTCUSDT', limit: 'ten' }), exactly(ccxt.BadRequest));
    await assert.rejects(client.publicGetDepth({ symbol: 'BTCUSDT', max_age_ms: 5 }), exactly(ccxt.BadRequest));
    await assert.rejects(client.publicGetKlines({ symbol: 'BTCUSDT', interval: '7m' }), exactly(ccxt.BadRequest));
    const res = await fetch(`${gateway.facade}/api/v3/nothing`);
    assert.equal(res.status, 404);
    assert.equal((await res.json()).code, -1020);
  });

  it('sends signed calls to the exchange itself', async () => {
    const trader = gateway.ccxt({ apiKey: 'EXAMPLE-NOT-A-KEY', secret: 'EXAMPLE-NOT-A-SECRET' });
    await trader.loadMarkets();
    const earlier = await gateway.stats();
    for (const [call, path] of [
      [() => trader.fetchBalance(), 'account'], [() => trader.fetchOpenOrders('BTC/USDT'), 'openOrders'],
      [() => trader.createOrder('BTC/USDT', 'limit', 'buy', 1, 1), 'order'], [() => trader.cancelOrder('1', 'BTC/USDT'), 'order'],
    ]) {
      await assert.rejects(call(), (err) => {
        assert.equal(err.constructor.name, 'BadRequest', err.message);
        assert.ok(err.message.includes(`https://api.binance.com/api/v3/${path}`) && err.message.includes('places no orders'), err.message);
        assert.ok(!err.message.includes('signature'), 'a signed query is told');
        return true;
      });
    }
    const later = await gateway.stats();
    assert.equal(later.by_path['/api/v3/order'], undefined);
    assert.deepEqual(later.by_credential['unknown'], earlier.by_credential['unknown'], 'no call with a strange key');
  });
});
