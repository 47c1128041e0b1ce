// Bytes that nobody meant: what comes out is an answer or an error of this client's, and a kept book is a book or nothing.
// RANDOM_SECONDS=15 goes on for so long; without it there are ROUNDS of each.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as client from '../exchange-gateway.js';
import { BOOK, FRESH, SNAPSHOT, event } from './stage.mjs';

const ROUNDS = 1500;
const PROBLEM = { code: 'circuit_open', detail: 'No.', ccxt_class: 'ExchangeNotAvailable', retryable: true, retry_after_ms: 1, age_ms: 3, allowed: ['a'] };
const TICKER = { ...BOOK, bid: '1', ask: '2', mid: '1.5', last: null, stats_freshness: FRESH };
const ASK = [
  [(gw) => gw.orderBook('okx', 'A/B'), BOOK, 200], [(gw) => gw.ticker('okx', 'A/B'), TICKER, 200],
  [(gw) => gw.balance('okx'), { exchange: 'okx', account: 'main', account_type: 'trading', balances: { BTC: { free: '1', used: '0', total: '1' } }, requested_at: '', received_at: '' }, 200],
  [(gw) => gw.orderBooks('A/B'), { symbol: 'A/B', best_bid: { exchange: 'okx', price: '1', size: '2' }, best_ask: null, venues: [{ exchange: 'okx', orderbook: BOOK, problem: null }, { exchange: 'x', orderbook: null, problem: PROBLEM }] }, 200],
  [(gw) => gw.markets('okx'), { exchange: 'okx', stale: false, freshness: FRESH, markets: [{ symbol: 'A/B', active: true, tick: '0.1', lot: null }] }, 200],
  [(gw) => gw.price('A/B'), { ...PROBLEM, venues: [{ exchange: 'okx', problem: PROBLEM }] }, 503],
];
const WEIRD = [null, true, 0, -1, 2 ** 60, 2.5, '', '1e5', 'NaN', '-0', '0'.repeat(600), 'live', [], [[]], {}, '2026-02-30T00:00:00Z', 'constructor', '\ud800'];

/** A generator of numbers that a seed repeats (mulberry32). */
function dice(seed) {
  let a = seed + 0x9e3779b9;
  const next = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (n) => Math.floor(next() * n), chance: (p) => next() < p, of: (list) => list[Math.floor(next() * list.length)] };
}

/** The bytes of a document with one or more things about it changed: a value, a field, or bytes. */
function mutated(d, doc) {
  const copy = structuredClone(doc);
  for (let n = d.below(4); n > 0; n--) {
    for (let at = copy, keys; (keys = Object.keys(at)).length;) {
      const key = d.of(keys);
      if (typeof at[key] === 'object' && at[key] !== null && d.chance(0.7)) {
        at = at[key];
        continue;
      }
      if (d.chance(0.3)) delete at[key];
      else at[key] = structuredClone(d.of(WEIRD));
      break;
    }
  }
  const bytes = Buffer.from(JSON.stringify(copy));
  for (let n = d.of([0, 0, 0, 1, 5]); n > 0; n--) bytes[d.below(bytes.length)] = d.below(256);
  return d.chance(0.1) ? bytes.subarray(0, d.below(bytes.length)) : bytes;
}

async function rounds(run) {
  const end = Date.now() + 1000 * Number(process.env.RANDOM_SECONDS ?? 0);
  for (let seed = 0; seed < ROUNDS || Date.now() < end; seed++) {
    await run(dice(seed)).catch((err) => { throw new Error(`seed ${seed}`, { cause: err }); });
  }
}

test('documents', async () => {
  let good = 0;
  await rounds(async (d) => {
    const [ask, doc, status] = d.of(ASK);
    const type = status === 200 ? 'application/json' : 'application/problem+json';
    const gw = new client.Gateway('http://gateway.test', { fetch: async () => new Response(mutated(d, doc), { status, headers: { 'content-type': type } }) });
    await ask(gw).then(() => { good++; }, (err) => { if (!(err instanceof client.GatewayError)) throw err; });
  });
  assert.ok(good > ROUNDS / 20, `${good}`);
});

function* messages(d) {
  let seq = 1;
  yield SNAPSHOT;
  for (let n = 1 + d.below(8); n > 0; n--) {
    if (d.chance(0.95)) seq++;
    const level = [(9 + d.below(25) / 10).toFixed(1), d.of(['0', '1', '0.00'])];
    const e = Buffer.from(event(d.of(['update', 'update', 'update', 'status', 'heartbeat']), { seq, prev_seq: seq - 1, [d.of(['bids', 'asks'])]: [level] }));
    if (d.chance(0.1)) e[d.below(e.length)] = d.below(256);
    yield e;
  }
}

/** Whatever came: sorted, not crossed, no deeper than asked, no level of nothing. */
function check(b) {
  const up = (side, by) => side.every((l, i) => i === 0 || by * client.compareNumbers(side[i - 1][0], l[0]) < 0);
  assert.ok(up(b.bids, -1) && up(b.asks, 1));
  assert.ok(!b.bids.length || !b.asks.length || client.compareNumbers(b.bids[0][0], b.asks[0][0]) < 0);
  assert.ok(Math.max(b.bids.length, b.asks.length) <= 5 && [...b.bids, ...b.asks].every((l) => client.compareNumbers(l[1], '0') > 0));
  assert.ok(b.stale || b.seq !== null);
  return b.stale ? 0 : 1;
}

test('streams', async () => {
  let live = 0;
  await rounds(async (d) => {
    const bytes = Buffer.concat([...messages(d)].map((m) => Buffer.from(m)));
    const body = new ReadableStream({
      async start(c) {
        for (let at = 0; at < bytes.length;) {
          const size = 1 + d.below(400);
          c.enqueue(new Uint8Array(bytes.subarray(at, at + size)));
          at += size;
          for (let turns = d.below(12); turns > 0; turns--) await turn(); // else nobody sees more than the end of it
        }
        c.close();
      },
    });
    const gw = new client.Gateway('http://gateway.test', { fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }) });
    for await (const b of gw.watchOrderBook('okx', 'BTC/USDT', { depth: 5 })) {
      live += check(b);
      if (b.freshness.status === 'stale' && ['disconnected', 'gap', 'bad_answer'].includes(b.freshness.reason)) break; // the end of the connection
    }
  });
  assert.ok(live > ROUNDS / 20, `${live}`);
});
