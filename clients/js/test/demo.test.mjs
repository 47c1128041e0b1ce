// The client against the gateway on simulated exchanges, in good times and in an outage.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import * as client from '../exchange-gateway.js';
import { demo, relay, until } from './stage.mjs';

const { Gateway, GatewayError } = client;
const DROPS = 20;
let stage, gw;
before(async () => {
  stage = await demo();
  gw = new Gateway(stage.public, { key: stage.key });
});
after(() => stage?.close());

const stale = (b) => (b.stale ? b : undefined);
const live = (b) => (b.stale ? undefined : b);
const caught = (promise) => promise.then(() => undefined, (err) => err);

test('every route answers what the client reads', async () => {
  assert.deepEqual((await gw.exchanges()).exchanges.map((e) => e.exchange), ['binance', 'coinbase', 'okx']);
  const b = await gw.orderBook('okx', 'BTC/USDT', { depth: 3 });
  assert.deepEqual([b.bids.length, b.asks.length, b.stale, b.symbol], [3, 3, false, 'BTC/USDT']);
  const t = await gw.ticker('binance', 'BTC/USDT');
  assert.equal(typeof t.last, 'string');
  assert.ok(client.compareNumbers(t.bid, t.mid) < 0 && client.compareNumbers(t.mid, t.ask) < 0);
  const several = await gw.tickers('binance', ['BTC/USDT', 'NO/SUCH']);
  assert.deepEqual([Object.keys(several.tickers), Object.keys(several.problems)], [['BTC/USDT'], ['NO/SUCH']]);
  assert.ok((await gw.markets('coinbase')).markets.some((m) => m.symbol === 'BTC/USDT'));
  assert.equal((await gw.status('okx')).status, 'ok');
  assert.deepEqual(Object.keys((await gw.orderBooks('BTC/USDT', { depth: 1 })).books).sort(), ['binance', 'coinbase', 'okx']);
  const p = await gw.price('BTC/USDT', { exchanges: ['okx', 'binance'] });
  assert.deepEqual([p.exchange, p.fallback, { ...p.passed }], ['okx', false, {}]);
  assert.match((await gw.balance('okx')).balances.BTC.total, /^[0-9]+\.[0-9]+$/);
  assert.equal((await gw.balance('okx', { wallet: 'funding' })).account_type, 'funding');
  assert.ok((await gw.circuits()).exchanges);
  assert.ok((await gw.openapi()).paths['/v1/price']);
  assert.ok(Array.isArray(await gw.ready()));
  await gw.live();
  const kinds = [];
  for await (const e of gw.watchCircuits()) if (kinds.push(e.type) === 2) break;
  assert.deepEqual(kinds, ['snapshot', 'state']);
});

test('each code of the gateway is a class', async () => {
  const classes = Object.fromEntries(Object.entries(client).filter(([, c]) => c?.prototype instanceof GatewayError));
  const source = await import('node:fs').then((fs) => fs.readFileSync(new URL('../exchange-gateway.js', import.meta.url), 'utf8'));
  for (const e of await gw.errors()) {
    const [, name, ccxt] = new RegExp(`^ {2}${e.code}: \\[(\\w+), '(\\w+)'\\]`, 'm').exec(source) ?? assert.fail(e.code);
    assert.ok(classes[name], name);
    assert.equal(ccxt, e.ccxt_class, e.code);
  }
});

test('what is wrong is said by the class', async () => {
  for (const [Class, ask] of [
    [client.SymbolUnknown, () => gw.orderBook('okx', 'NO/SUCH')], [client.ExchangeUnknown, () => gw.ticker('mtgox', 'BTC/USDT')],
    [client.InvalidParameter, () => gw.orderBook('okx', 'BTC/USDT', { depth: 0 })], [client.AccountUnknown, () => gw.balance('okx', { account: 'nobodys' })],
    [client.Unauthenticated, () => new Gateway(stage.public).balance('okx')], [client.NotFound, () => new Gateway(`${stage.public}/no`).live()],
  ]) {
    const err = await caught(ask());
    assert.equal(err?.constructor, Class, `${err}`);
    assert.equal(err.retryable, false);
    assert.ok(err.requestId);
  }
});

test('a client over its quota is told for how long', async () => {
  const over = async () => { for (let i = 0; i < 2000; i++) await gw.exchanges(); }; // 100 a second by default
  const err = await caught(over());
  assert.ok(err instanceof client.ClientRateLimited && err.retryAfterMs >= 1000 && err.ccxtClass === 'RateLimitExceeded', `${err}`);
  await wait(err.retryAfterMs);
  await gw.exchanges();
});

test('an exchange that is closed: books with their age, no balance', async (t) => {
  const books = gw.watchOrderBook('okx', 'BTC/USDT', { depth: 5, everyMs: 200 });
  t.after(() => books.return());
  const next = async () => (await books.next()).value;
  await until('the stream is live', async () => live(await next()));
  await stage.fault('okx', { kind: 'maintenance', for: '60s' });
  t.after(() => stage.heal(gw, 'okx'));

  const streamed = await until('the stream says so', async () => stale(await next()));
  assert.ok(streamed.bids.length && streamed.freshness.reason);
  const age = streamed.freshness.ageMs;
  assert.ok((await next()).freshness.ageMs > age); // nobody vouches for it, so it grows

  const book = await until('an old book', async () => stale(await gw.orderBook('okx', 'BTC/USDT', { depth: 5 })));
  assert.ok(book.bids.length);
  assert.match(book.freshness.reason, /^(maintenance|circuit_open)$/);
  await wait(200);
  assert.ok((await gw.orderBook('okx', 'BTC/USDT')).freshness.ageMs > 200);
  const old = await caught(gw.orderBook('okx', 'BTC/USDT', { maxAgeMs: 100 }));
  assert.ok(old instanceof client.BookTooStale && old.ageMs > 100 && old.ccxtClass === 'ExchangeNotAvailable', `${old}`);
  assert.ok(await caught(gw.orderBook('okx', 'BTC/USDT', { requireLive: true })) instanceof client.NotLive);

  const none = await caught(gw.balance('okx'));
  assert.ok(none instanceof client.ExchangeMaintenance || none instanceof client.CircuitOpen, `${none}`);
  assert.ok(none.retryAfterMs >= 1000);
  await until('its circuit opens', async () => await caught(gw.balance('okx')) instanceof client.CircuitOpen);

  const p = await gw.price('BTC/USDT', { exchanges: ['okx', 'binance'] });
  assert.deepEqual([p.exchange, p.fallback, Object.keys(p.passed)], ['binance', true, ['okx']]);
  assert.ok(p.passed.okx instanceof GatewayError);

  await stage.heal(gw, 'okx');
  assert.equal((await until('the stream recovers', async () => live(await next()))).freshness.reason, null);
});

test('an exchange that hangs gives no balance', async (t) => {
  await stage.fault('coinbase', { kind: 'hang', class: 'account', for: '60s' });
  t.after(() => stage.heal(gw, 'coinbase'));
  const err = await caught(gw.balance('coinbase'));
  assert.ok(err instanceof client.UpstreamTimeout || err instanceof client.CircuitOpen, `${err}`);
  assert.ok(err.retryAfterMs >= 1000);
});

test('a book is the exchange\'s after each drop', async (t) => {
  // Every version that is called live is compared, whole, with the exchange's book of the same sequence.
  const between = await relay(stage.public);
  t.after(between.close);
  const through = new Gateway(between.url);
  for (const [exchange, depth] of [['okx', 5], ['binance', 50]]) {
    const books = through.watchOrderBook(exchange, 'BTC/USDT', { depth, silenceMs: 5000 });
    let compared = 0, differences = 0;
    for (let drop = 0; drop < DROPS / 2; drop++) {
      between.cut(); // before the first of them nobody is connected
      if (drop % 3 === 2) { // it also takes a while until the next connection gives anything
        between.hold(true);
        setTimeout(() => between.hold(false), 300);
      }
      if (drop) await until('the loss is told', async () => stale((await books.next()).value));
      for (let i = 0; i < 3; i++) {
        const b = await until('a live book', async () => live((await books.next()).value));
        const truth = await stage.truth(exchange, b);
        const same = (side, want) => side.length === want.length && side.every((l, j) => [0, 1].every((k) => client.compareNumbers(l[k], want[j][k]) === 0));
        compared++;
        if (!same(b.bids, truth[0]) || !same(b.asks, truth[1])) differences++;
      }
    }
    await books.return();
    assert.deepEqual([compared, differences], [3 * DROPS / 2, 0]);
  }
  assert.ok(between.dialled >= DROPS);
});
