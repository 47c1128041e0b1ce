// ccxt's streaming classes for a minute on the simulated exchanges, all at once: without an error, and with every book that
// is looked at equal to the simulator's own of that sequence or moment. No keys: market data is public at all three.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { binance, okx, coinbase, ccxt, control, exactly, inject, numbers } from './venues.mjs';

const MINUTE = 60_000;
const EVERY = 500; // ms between two looks at one symbol: some hundred a symbol, which leaves the exchanges most of the machine

class WrongBook extends Error {}

// What is watched, at each exchange: a large book, one with prices of many decimals, one with bids only, one that changes
// every 20 to 60 s. limit is what ccxt is asked for. depth is how much of its book must be right: all of it but at
// Binance, where a client that began with the best levels of a larger book does not learn of those below; the best 500 of
// 1,000 are beyond the reach of a minute. least is how many updates must come: a sixth to a half of what is due, since
// ccxt merges updates when the machine is busy.
const fast = 100, calm = 30, slow = 5, rare = 1; // rare: a book may be the same after its step
const venues = [
  {
    id: 'binance', make: binance, lost: ccxt.ChecksumError, sockets: 7, // one each: ccxt spreads subscriptions over connections here
    books: [
      { symbol: 'BTC/USDT', limit: 5000, depth: 5000, least: fast },
      { symbol: 'ETH/USDT', depth: 500, least: fast },
      { symbol: 'SHIB/USDT', depth: 500, least: fast },
      { symbol: 'DUST/ETH', depth: 500, least: slow },
      { symbol: 'RUNE/EUR', depth: 500, least: rare },
    ],
    tickers: [{ symbol: 'BTC/USDT', least: calm }, { symbol: 'RUNE/EUR', least: rare }],
  },
  {
    id: 'okx', make: okx, lost: ccxt.InvalidNonce, sockets: 1,
    books: [
      { symbol: 'BTC/USDT', depth: 400, least: fast },
      { symbol: 'ETH/USDT', limit: 5, depth: 5, least: fast }, // the channel books5, of whole books
      { symbol: 'BABYDOGE/USDT', depth: 400, least: fast },
      { symbol: 'DUST/ETH', depth: 400, least: slow },
      { symbol: 'LTC/EUR', depth: 400, least: rare },
    ],
    tickers: [{ symbol: 'BTC/USDT', least: calm }, { symbol: 'LTC/EUR', least: rare }],
  },
  {
    id: 'coinbase', make: coinbase, lost: WrongBook, sockets: 1, // ccxt does not look at sequence_num
    books: [
      { symbol: 'BTC/USD', depth: 5000, least: fast },
      { symbol: 'ETH/USDC', depth: 5000, least: fast }, // sent as ETH-USD
      { symbol: 'PEPE/USD', depth: 5000, least: fast },
      { symbol: 'DUST/BTC', depth: 5000, least: slow },
      { symbol: 'CRV/EUR', depth: 5000, least: rare },
    ],
    tickers: [{ symbol: 'BTC/USD', least: calm }, { symbol: 'CRV/EUR', least: rare }],
  },
];

// truth is the simulator's book of a sequence, or of a moment where the exchange sends no sequence.
async function truth(venue, market, depth, { nonce, datetime }) {
  const when = nonce === undefined ? `at=${encodeURIComponent(datetime)}` : `seq=${nonce}`;
  const book = await control('GET', `/v1/book/${venue}?symbol=${market}&depth=${depth}&${when}`);
  return { bids: numbers(book.bids), asks: numbers(book.asks) };
}

// What ccxt hands out goes on changing, so what is compared is copied, into plain arrays. A side without levels has no best.
const copied = (side, depth) => Array.from(side.slice(0, depth), ([price, size]) => [price, size]);
const levels = (book, depth) => ({ bids: copied(book.bids, depth), asks: copied(book.asks, depth) });
const stamp = ({ nonce, datetime }) => ({ nonce, datetime });
const best = (price, size) => (price === undefined ? [] : [[price, size]]);
const top = (t) => ({ bids: best(t.bid, t.bidVolume), asks: best(t.ask, t.askVolume) });

// difference describes the first one, or is undefined: a diff of 10,000 levels would help nobody.
function difference(got, want) {
  for (const side of ['bids', 'asks']) {
    for (let i = 0; i < Math.max(got[side].length, want[side].length); i++) {
      const [a, b] = [got[side][i], want[side][i]].map((level) => level?.join(' x ') ?? 'nothing');
      if (a !== b) return `${side}[${i}] is ${a} instead of ${b}`;
    }
  }
  return undefined;
}

// follow awaits one update after another until over, and now and then compares what came with the original, one at a time.
async function follow(over, row, next, copy, original) {
  let looking, due = 0;
  const look = async (got, at) => {
    const want = await original(at);
    row.compared++;
    row.levels += want.bids.length + want.asks.length;
    const d = difference(got, want);
    if (d === undefined) return;
    row.different++;
    row.first ??= `${at.nonce ?? at.datetime}: ${d}`;
  };
  for (;;) {
    const update = await Promise.race([next(), over]);
    if (update === undefined) break;
    row.updates++;
    if (looking || Date.now() < due) continue;
    due = Date.now() + EVERY;
    looking = look(copy(update), stamp(update)).finally(() => { looking = undefined; });
  }
  await looking;
  return row;
}

// watch runs all subscriptions of a client until over.
function watch(v, client, over) {
  const row = (what, w) => ({ symbol: w.symbol, what, updates: 0, compared: 0, levels: 0, different: 0 });
  const market = (w) => client.market(w.symbol).id;
  return Promise.all([
    ...v.books.map((w) => follow(over, row('book', w), () => client.watchOrderBook(w.symbol, w.limit),
      (book) => levels(book, w.depth), (at) => truth(v.id, market(w), w.depth, at))),
    ...v.tickers.map((w) => follow(over, row('ticker', w), () => client.watchTicker(w.symbol),
      top, ({ datetime }) => truth(v.id, market(w), 1, { datetime }))),
  ]);
}

// ccxt's own error for it, or else a wrong book: so the comparison does see one.
describe('a lost message', () => {
  for (const v of venues) {
    it(v.id, { timeout: 20_000 }, async () => {
      const client = v.make(undefined, ccxt.pro);
      client.enableRateLimit = false; // or it may hold its new subscription back until the socket is closed, and fail unheard
      const [{ symbol, limit, depth }] = v.books;
      const untilWrong = async () => {
        for (;;) {
          const book = await client.watchOrderBook(symbol, limit);
          const got = levels(book, depth), want = await truth(v.id, client.market(symbol).id, depth, stamp(book));
          const d = difference(got, want);
          if (d !== undefined) throw new WrongBook(d);
        }
      };
      try {
        await client.watchOrderBook(symbol, limit);
        await inject(v.id, { kind: 'gap', symbol: client.market(symbol).id, count: 1 });
        await assert.rejects(untilWrong, exactly(v.lost));
      } finally {
        await client.close();
      }
    });
  }
});

// The table goes out as diagnostics: what a test prints itself may spoil the runner's own stream (nodejs/node#66164).
const heads = ['', '', 'updates', 'compared', 'levels', 'different'];
const line = ([symbol, what, ...counts]) => symbol.padEnd(14) + what.padEnd(6) + counts.slice(0, 4).map((n) => String(n).padStart(10)).join('');

describe('a minute of streams', { concurrency: true }, () => {
  for (const v of venues) {
    it(v.id, async (t) => {
      const client = v.make(undefined, ccxt.pro);
      const opened = async () => (await control('GET', `/v1/stats/${v.id}`)).streams.opened;
      let timer;
      try {
        await client.loadMarkets();
        const before = await opened();
        const rows = await watch(v, client, new Promise((resolve) => { timer = setTimeout(resolve, MINUTE); }));
        [heads, ...rows.map(Object.values)].forEach((cells) => t.diagnostic(line(cells)));
        rows.forEach((row, i) => {
          const name = `${row.symbol} ${row.what}`;
          const { least } = [...v.books, ...v.tickers][i];
          assert.equal(row.first, undefined, `${name} differs, first at ${row.first}`);
          assert.ok(row.updates >= least, `${name}: ${row.updates} updates, at least ${least} are due`);
          assert.ok(row.compared >= Math.min(least, 10) && row.levels > 0, `${name}: ${row.compared} comparisons of ${row.levels} levels`);
        });
        assert.equal(await opened() - before, v.sockets, 'each connection lasted the minute');
      } finally {
        clearTimeout(timer);
        await client.close();
      }
    });
  }
});
