// Books that are kept from a stream, message by message, from a server that says what it is told to say.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as client from '../exchange-gateway.js';
import { SNAPSHOT, STREAM, answer, canned, event, problem, until } from './stage.mjs';

const { Gateway } = client;
const BIDS = [['10.0', '1'], ['9.5', '2']];
const BEAT = 'event: heartbeat\ndata: {"type":"heartbeat","sent_at":"2026-11-29T02:00:15Z"}\n\n';
const state = (b) => [b.freshness.status, b.freshness.reason];
const LIVE = ['live', null];

let ends = [];
const random = Math.random;
beforeEach(() => { Math.random = () => 0; }); // 50 ms between two connections
afterEach(async () => {
  Math.random = random;
  for (const end of ends.splice(0).reverse()) await end();
});

/** Among the parts of an answer: what follows, or the end of the connection, waits until another book was taken. */
const TAKEN = Symbol('taken');

/** A server that gives one connection after the other these texts, and the client's books. */
async function watch(answers, options = {}) {
  let taken = 0, passed = 0;
  const another = () => { const n = ++passed; return until('a book is taken', () => taken >= n || ends.length === 0); };
  const server = await canned(...answers.map((a) => [a].flat().map((part) => (part === TAKEN ? another : part))));
  const books = new Gateway(server.url, { key: 'gw_example' }).watchOrderBook('okx', 'BTC/USDT', { depth: 5, ...options });
  ends.push(server.close, () => books.return());
  const next = async () => { const { value } = await books.next(); taken++; return value; };
  const states = async (n) => { const all = []; while (all.length < n) all.push(state(await next())); return all; };
  return { server, books, next, states };
}

test('a snapshot and what changes it', async () => {
  const update = event('update', {
    seq: 2, prev_seq: 1, exchange_seq: 71, bids: [['10.00', '0'], ['9.50', '4'], ['9.75', '1']], asks: [['10.4', '7']],
  }, 'e.1-2');
  const { next, server } = await watch([[STREAM + event('status') + SNAPSHOT, TAKEN, update, TAKEN]]);
  let b = await next();
  assert.deepEqual([b.bids, b.asks, state(b), b.epoch, b.seq, b.nonce, b.complete], [BIDS, [['10.5', '3']], LIVE, 'e.1', 1, 70, true]);
  assert.equal(b.freshness.age_ms, 250);
  b = await next();
  assert.deepEqual([b.bids, b.asks, b.seq, b.nonce, b.mid], [[['9.75', '1'], ['9.50', '4']], [['10.4', '7'], ['10.5', '3']], 2, 71, '10.075']);
  assert.equal(b.missed, 0);
  assert.match(server.requests[0], /^GET \/v1\/stream\/orderbook\?exchange=okx&symbol=BTC%2FUSDT&depth=5 HTTP\/1.1\r\n/);
  assert.match(server.requests[0], /\r\nauthorization: Bearer gw_example\r\n/i);
  assert.doesNotMatch(server.requests[0], /last-event-id/i);
});

test('a lost connection is stale at once and goes on where it was', async () => {
  const update = event('update', { seq: 2, prev_seq: 1, bids: [['9.5', '0']] }, 'e.1-2');
  const { next, server } = await watch([[STREAM + event('status') + SNAPSHOT, TAKEN], [TAKEN, STREAM + event('status') + update, TAKEN]]);
  assert.deepEqual(state(await next()), LIVE);
  let b = await next();
  assert.deepEqual([state(b), b.bids], [['stale', 'disconnected'], BIDS]);
  assert.ok(b.freshness.ageMs >= 250); // it goes on while nobody answers
  b = await next();
  assert.deepEqual([state(b), b.bids, b.seq], [LIVE, [['10.0', '1']], 2]);
  assert.match(server.requests[1], /\r\nlast-event-id: e.1-1\r\n/i);
});

test('live is not believed before levels or a heartbeat prove it', async () => {
  const { next } = await watch([[STREAM + event('status') + SNAPSHOT, TAKEN], [STREAM + event('status'), 300, BEAT, 5000]], { everyMs: 100 });
  await until('the book is live', async () => state(await next())[0] === 'live');
  const began = performance.now();
  const seen = [state(await next())];
  while (seen.at(-1)[0] !== 'live') seen.push(state(await next()));
  assert.ok(performance.now() - began >= 290);
  for (const s of seen.slice(0, -1)) assert.deepEqual(s, ['stale', 'disconnected']);
});

test('a heartbeat proves nothing that the gateway does not say', async () => {
  const update = event('update', { seq: 2, prev_seq: 1, status: 'stale', bids: [['9.5', '1']] }, 'e.1-2');
  const { states } = await watch([[STREAM + SNAPSHOT, TAKEN, event('status', { status: 'stale', reason: 'timeout' }) + BEAT, TAKEN, update, TAKEN, event('status') + BEAT, TAKEN]]);
  assert.deepEqual(await states(4), [LIVE, ['stale', 'timeout'], ['stale', 'timeout'], LIVE]);
});

for (const [name, wrong] of Object.entries({
  prev_seq: event('update', { seq: 3, prev_seq: 2, bids: [['9.9', '1']] }),
  epoch: event('update', { epoch: 'e.2', seq: 2, prev_seq: 1, bids: [['9.9', '1']] }),
  crossed: event('update', { seq: 2, prev_seq: 1, bids: [['10.5', '1']] }),
  'too deep': event('update', { seq: 2, prev_seq: 1, bids: [0, 1, 2, 3, 4].map((i) => [`9.${i}`, '1']) }),
})) {
  test(`a gap asks for the whole book: ${name}`, async () => {
    const { next, server } = await watch([[STREAM + SNAPSHOT, TAKEN, wrong, TAKEN], [STREAM + SNAPSHOT, TAKEN]]);
    await next();
    const b = await next();
    assert.deepEqual([state(b), b.bids, b.asks, b.freshness.ageMs, b.seq], [['stale', 'gap'], [], [], null, null]);
    assert.deepEqual(state(await next()), LIVE);
    assert.equal(server.dialled, 2);
    assert.doesNotMatch(server.requests[1], /last-event-id/i);
  });
}

test('an update before any snapshot is a gap', async () => {
  const { states } = await watch([[STREAM + event('update', { seq: 2, prev_seq: 1 }), TAKEN], [STREAM + SNAPSHOT, TAKEN]]);
  assert.deepEqual(await states(2), [['stale', 'gap'], LIVE]);
});

for (const wrong of [
  'event: update\ndata: {\n\n', 'event: update\ndata: []\n\n', event('snapshot', { seq: '1' }), event('snapshot', { bids: [['1']] }),
  event('snapshot', { confirmed_at: 7 }), event('snapshot', { epoch: null }), event('status', { status: null }), `data: ${'x'.repeat(5 * 2 ** 20)}`,
]) {
  test(`rubbish is asked for again: ${wrong.slice(0, 80).replace(/\s+/g, ' ')}`, async () => {
    const { next, states } = await watch([[STREAM + SNAPSHOT, TAKEN, wrong, TAKEN], [STREAM + SNAPSHOT, TAKEN]]);
    await next();
    assert.deepEqual(await states(2), [['stale', 'bad_answer'], LIVE]);
  });
}

test('messages that nobody knows are passed over', async () => {
  const { states } = await watch([[`${STREAM}: hello\n\nevent: eclipse\ndata: {}\n\n${SNAPSHOT}`, TAKEN]]);
  assert.deepEqual(await states(1), [LIVE]);
});

test('any cut into pieces is the same stream', async () => {
  const whole = event('status') + SNAPSHOT + event('update', { seq: 2, prev_seq: 1, symbol: 'ПРИВЕТ/USDT', asks: [['10.6', '1']] });
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (const end of ['\n', '\r\n']) {
    const bytes = Buffer.from(whole.replaceAll('\n', end));
    for (const size of [1, 7, 64, bytes.length]) {
      const parts = [];
      for (let i = 0; i < bytes.length; i += size) {
        const p = bytes.subarray(i, i + size);
        parts.push(Buffer.from(`${p.length.toString(16)}\r\n`), p, Buffer.from('\r\n'));
      }
      const { next } = await watch([[head, Buffer.concat(parts), 60_000]]);
      let b; // both versions may come at once
      do b = await next(); while (b.seq !== 2);
      assert.deepEqual([b.symbol, b.asks], ['ПРИВЕТ/USDT', [['10.5', '3'], ['10.6', '1']]]);
    }
  }
});

test('silence counts as lost, and so does a byte now and then', async () => {
  for (const quiet of [[30_000], Array(40).fill([':', 50]).flat()]) {
    const { states } = await watch([[STREAM + SNAPSHOT, ...quiet], [STREAM + SNAPSHOT, 60_000]], { silenceMs: 300 });
    assert.deepEqual(await states(3), [LIVE, ['stale', 'silent'], LIVE]);
  }
});

test('every gives the loop a turn', async () => {
  const { next, server } = await watch([[STREAM + SNAPSHOT, 30_000]], { everyMs: 50 });
  const ages = [];
  await until('the book is live', async () => state(await next())[0] === 'live');
  for (let i = 0; i < 6; i++) ages.push((await next()).freshness.ageMs);
  assert.deepEqual(ages, ages.toSorted((a, b) => a - b));
  assert.equal(server.dialled, 1);
});

test('withheld takes the book away', async () => {
  const { next } = await watch([[STREAM + SNAPSHOT, TAKEN, event('status', { status: 'withheld', reason: 'withheld' }), TAKEN, event('status') + SNAPSHOT, TAKEN]]);
  await next();
  const b = await next();
  assert.deepEqual([state(b), b.bids, b.asks, b.freshness.ageMs, b.complete], [['withheld', 'withheld'], [], [], null, false]);
  assert.deepEqual(state(await next()), LIVE);
});

test('a refusal that passes is waited for as long as it says', async () => {
  const { states } = await watch([problem(503, 'overloaded', { retryable: true, retry_after_ms: 1000 }), answer('busy', '503 Busy', 'text/html', 'Retry-After: 1'), [STREAM + SNAPSHOT, 60_000]]);
  const began = performance.now();
  assert.deepEqual(await states(3), [['stale', 'overloaded'], ['stale', 'disconnected'], LIVE]);
  assert.ok(performance.now() - began >= 1990);
});

test('a refusal that stays is thrown', async () => {
  for (const [said, Class] of [
    [problem(401, 'unauthenticated'), client.Unauthenticated], [problem(404, 'symbol_unknown'), client.SymbolUnknown],
    [problem(501, 'not_supported'), client.ExchangeNotSupported], [answer('{}'), client.BadAnswer],
  ]) {
    const { next, server } = await watch([said]);
    await assert.rejects(next(), Class);
    assert.equal(server.dialled, 1);
  }
});

test('a key that was revoked ends it', async () => {
  const { next, states } = await watch([[STREAM + SNAPSHOT, TAKEN, 'event: close\ndata: {"type":"close","reason":"the key is no longer valid"}\n\n'], [TAKEN, problem(401, 'unauthenticated')]]);
  assert.deepEqual(await states(2), [LIVE, ['stale', 'disconnected']]);
  await assert.rejects(next(), client.Unauthenticated);
});

test('leaving the loop hangs up', async () => {
  const { books, server } = await watch([[STREAM + SNAPSHOT, 60_000]]);
  for await (const _ of books) break;
  await until('the server notices', () => server.ended === 1);
});

test('return ends it at once, also while next waits', async () => {
  const { books, next, server } = await watch([[STREAM + SNAPSHOT, 60_000]]);
  await next();
  const waits = books.next();
  assert.deepEqual(await books.return(), { done: true, value: undefined });
  assert.deepEqual(await waits, { done: true, value: undefined });
  await until('the server notices', () => server.ended === 1);
  assert.equal((await books.next()).done, true);
  assert.equal(server.requests.length, 1);
});

test('a watch that is dropped is ended when that is found out, and not while somebody waits', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  const server = await canned([STREAM + SNAPSHOT, 500, event('update', { seq: 2, prev_seq: 1 }), 60_000]);
  ends.push(server.close);
  const drop = async () => { // and gives what somebody waits for
    const books = new Gateway(server.url).watchOrderBook('okx', 'BTC/USDT', { depth: 5 });
    assert.equal((await books.next()).value.seq, 1);
    return [books.next()];
  };
  const [waits] = await drop();
  await until('the next book', () => { gc(); return Promise.race([waits.then((r) => r.value.seq === 2), wait(20)]); });
  await until('the server notices', () => { gc(); return server.ended === 1; });
  assert.equal(server.requests.length, 1);
});

test('a signal ends the connection while the loop does something else', async () => {
  const why = new Error('enough'), stop = new AbortController();
  const { books, next, server } = await watch([[STREAM + SNAPSHOT, 60_000]], { signal: stop.signal });
  await next();
  stop.abort(why);
  await until('the server notices', () => server.ended === 1);
  await assert.rejects(books.next(), (e) => e === why);
  assert.equal((await books.next()).done, true);
});

test('a slow loop gets the newest version, and how many it missed', async () => {
  const updates = [2, 3, 4, 5].map((seq) => event('update', { seq, prev_seq: seq - 1, bids: [['9.5', `${seq}`]], conflated: seq === 4 ? 7 : 0 }));
  let sent = false;
  const { next } = await watch([[STREAM + SNAPSHOT, TAKEN, ...updates.slice(0, 2), 50, ...updates.slice(2), 50, () => { sent = true; }, 60_000]]);
  assert.equal((await next()).missed, 0);
  await until('all was sent', () => sent);
  const b = await next();
  assert.deepEqual([b.seq, b.bids, b.missed], [5, [['10.0', '1'], ['9.5', '5']], 10]);
});

test('a loss and silence are seen by a slow loop, by the age that the book has then', async () => {
  for (const [reason, first] of [['disconnected', [STREAM + SNAPSHOT, TAKEN]], ['silent', [STREAM + SNAPSHOT, 60_000]]]) {
    const { next, server } = await watch([first, [60_000]], { silenceMs: 300 });
    const began = performance.now();
    assert.deepEqual(state(await next()), LIVE);
    await until('the client connects again by itself', () => server.requests.length === 2);
    await wait(300);
    const b = await next();
    assert.deepEqual([state(b), b.missed], [['stale', reason], 0]);
    const { ageMs } = b.freshness, most = 250 + performance.now() - began;
    assert.ok(ageMs >= 250 + 300 && ageMs <= most, `${ageMs} of ${most}`);
  }
});

test('time in buffers counts as age', async () => {
  const late = event('update', { seq: 2, prev_seq: 1, sent_at: '2026-11-29T02:00:00.36Z' });
  const { next } = await watch([[STREAM + SNAPSHOT, TAKEN, 1000, late, 60_000]]);
  await next();
  const b = await next();
  assert.equal(b.freshness.age_ms, 260);
  assert.ok(b.freshness.ageMs >= 260 + 900, `${b.freshness.ageMs}`);
});

test('an end that no repeating can help reaches a slow loop', async () => {
  const { next, server } = await watch([[STREAM + SNAPSHOT, TAKEN], problem(401, 'unauthenticated')]);
  await next();
  await until('it is refused', () => server.requests.length === 2 && server.ended === 2);
  await assert.rejects(async () => { for (let turns = 0; turns < 2; turns++) await next(); }, client.Unauthenticated);
});

test('a signal ends it with its own reason, whatever it waits for', async () => {
  const why = new Error('enough');
  for (const said of [[STREAM + SNAPSHOT, 60_000], [60_000], problem(503, 'overloaded', { retryable: true, retry_after_ms: 60_000 })]) {
    const stop = new AbortController();
    const { books } = await watch([said], { signal: stop.signal });
    setTimeout(() => stop.abort(why), 200);
    await assert.rejects(async () => { for await (const _ of books); }, (e) => e === why);
  }
});

test('arguments that make no sense', async () => {
  for (const wrong of [{ silenceMs: 0 }, { everyMs: 0 }, { everyMs: -1 }]) {
    await assert.rejects(new Gateway().watchOrderBook('okx', 'BTC/USDT', wrong).next(), TypeError);
  }
});
