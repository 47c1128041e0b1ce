// The public calls that freqtrade makes at its start and in its loop, made with ccxt on the gateway's facade by several bots
// at once, and counted at the simulated exchange: what bots ask together is asked once, and the exchange's budget is kept.
//
// The calls are those of its class Exchange and of its pair lists: markets at the start and every hour; all tickers for
// VolumePairList; candles of every pair, up to 1,000 without `since` and in windows of 1,000 with it; in the loop, every 5 s,
// a ticker or a book for each open pair, the book with the least of its limits that is enough; trades by time, then by id.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Gateway, sleep } from './gateway.mjs';

const BOTS = 3;
const ROUNDS = 5;
const LIMITS = [5, 10, 20, 50, 100, 500, 1000]; // Binance's l2_limit_range
const CANDLES = 1000; // ohlcv_candle_limit
const MINUTE = 60_000;
const WEIGHT = 6000; // of a minute, of which the gateway may use 70 %

describe('the calls of freqtrade', () => {
  let gateway, bots, pairs, began;
  before(async () => {
    gateway = await Gateway.start();
    await gateway.tell('POST', '/v1/stats/reset');
    began = Date.now();
    bots = Array.from({ length: BOTS }, () => gateway.ccxt());
  });
  after(() => gateway?.stop());

  const asked = async (path) => (await gateway.stats()).by_path[`/api/v3/${path}`] ?? 0;
  const together = (what) => Promise.all(bots.map(what));

  it('start: markets', async () => {
    await together((bot) => bot.loadMarkets(true));
    pairs = bots[0].symbols.filter((s) => bots[0].market(s).active);
    assert.ok(pairs.length >= 13);
    // One is the gateway's own list of pairs, one is the list in Binance's form.
    assert.ok(await asked('exchangeInfo') <= 2, 'lists');
    await together((bot) => bot.loadMarkets(true));
    assert.ok(await asked('exchangeInfo') <= 2, 'lists, an hour has not passed');
  });

  it('start: all tickers, for a pair list by volume', async () => {
    const all = await together((bot) => bot.fetchTickers());
    for (const tickers of all) {
      for (const pair of pairs) assert.ok(tickers[pair].quoteVolume > 0 && tickers[pair].last > 0, pair);
    }
    const spent = await asked('ticker/24hr');
    assert.ok(spent <= 2, `${spent} calls for ${BOTS} bots at once, at 80 weight each`);
    await together((bot) => bot.fetchBidsAsks());
    assert.ok(await asked('ticker/bookTicker') <= 2);
  });

  it('start: candles of every pair, and of days for its age', async () => {
    const bot = bots[0];
    for (const pair of pairs) {
      const rows = await bot.fetchOHLCV(pair, '5m', undefined, CANDLES);
      assert.equal(rows.length, CANDLES, pair);
      assert.ok(rows.every((r, i) => i === 0 || r[0] - rows[i - 1][0] === 5 * MINUTE), `${pair} has gaps`);
      assert.ok(Date.now() - rows.at(-1)[0] < 10 * MINUTE, pair);
    }
    const day = 24 * 60 * MINUTE;
    for (const pair of pairs.slice(0, 5)) assert.equal((await bot.fetchOHLCV(pair, '1d', Date.now() - 31 * day, 30)).length, 30);
  });

  it('start: a history in windows', async () => {
    const [step, count] = [MINUTE, 3 * CANDLES];
    const since = Math.floor(Date.now() / step) * step - count * step;
    const windows = await Promise.all([0, 1, 2].map((n) => bots[1].fetchOHLCV('BTC/USDT', '1m', since + n * CANDLES * step, CANDLES)));
    const rows = windows.flat();
    assert.equal(rows.length, count);
    assert.ok(rows.every((r, i) => r[0] === since + i * step), 'each minute once, in order');
  });

  it('start: trades by time, then by id', async () => {
    const bot = bots[2];
    let page = await bot.fetchTrades('ETH/USDT', Date.now() - 20 * MINUTE, 200);
    const ids = page.map((t) => Number(t.id));
    for (let i = 0; i < 2; i++) {
      page = await bot.fetchTrades('ETH/USDT', undefined, 200, { fromId: String(ids.at(-1) + 1) });
      ids.push(...page.map((t) => Number(t.id)));
    }
    assert.equal(ids.length, 600);
    assert.ok(ids.every((id, i) => i === 0 || id === ids[i - 1] + 1), 'no trade is missing and none comes twice');
  });

  it('loop: tickers, books of each of its limits, new candles', async () => {
    const open = pairs.slice(0, 3);
    for (let round = 0; round < ROUNDS; round++) {
      const turn = async (bot) => {
        for (const pair of open) {
          const limit = LIMITS.find((n) => n >= LIMITS[round % LIMITS.length]);
          const book = await bot.fetchOrderBook(pair, limit);
          assert.ok(book.bids.length > 0 && book.bids.length <= limit && book.bids[0][0] < book.asks[0][0], pair);
          const truth = await gateway.truth(bot.market(pair).id, 5, book);
          assert.deepEqual(book.bids.slice(0, 5).map((l) => [...l]), truth.bids, `${pair} at ${limit}`);
          assert.deepEqual(book.asks.slice(0, 5).map((l) => [...l]), truth.asks, `${pair} at ${limit}`);
          assert.ok((await bot.fetchTicker(pair)).last > 0, pair);
        }
      };
      await together(turn);
      for (const pair of open) await bots[round % BOTS].fetchOHLCV(pair, '5m', undefined, 3);
      await sleep(1000);
    }
    for (const limit of LIMITS) {
      const book = await bots[0].fetchOrderBook('BTC/USDT', limit);
      assert.ok(book.bids.length >= Math.min(limit, 800) && book.bids.length <= limit, `${book.bids.length} of ${limit}`);
    }
  });

  it('no storm: what was asked together was asked once, and the budget was kept', async () => {
    const stats = await gateway.stats();
    const seconds = (Date.now() - began) / 1000;
    const calls = (path) => stats.by_path[`/api/v3/${path}`] ?? 0;
    const loop = ROUNDS * 3; // turns of three pairs
    // A pair that is read streams after its third read: its books cost a snapshot, and a look now and then.
    assert.ok(calls('depth') <= 6 + loop + LIMITS.length, `${calls('depth')} books`);
    assert.ok(calls('ticker/24hr') <= 2 + loop + seconds, `${calls('ticker/24hr')} tickers by ${BOTS} bots`);
    assert.ok(calls('ticker/24hr') < 2 + loop * BOTS, 'bots share');
    assert.ok(calls('exchangeInfo') <= 2);
    const refused = Object.entries(stats.by_status).filter(([status]) => !['200', '101'].includes(status));
    assert.deepEqual(refused, [], 'answers other than 200');
    const res = await fetch(`${gateway.venues.binance}/api/v3/ping`);
    const used = Number(res.headers.get('x-mbx-used-weight-1m'));
    assert.ok(used <= 0.7 * WEIGHT + 1, `${used} of ${WEIGHT} in this minute`);
  });
});
