// Answers and refusals, word by word, from a server that says what it is told to say.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import * as client from '../exchange-gateway.js';
import { BOOK, FRESH, answer, canned, problem } from './stage.mjs';

const { Gateway, GatewayError } = client;
const askBook = (gw, options) => gw.orderBook('okx', 'BTC/USDT', { depth: 2, maxAgeMs: 2000, requireLive: true, ...options });

/** Asks a server that has one answer, and closes it. */
async function ask(said, { call = askBook, ...options } = {}) {
  const server = await canned(said);
  try {
    return [await call(new Gateway(server.url, { timeoutMs: 5000, ...options })), server];
  } finally {
    await server.close();
  }
}

async function refused(said, Class, options) {
  const err = await ask(said, options).then(() => assert.fail('it was answered'), (e) => e);
  assert.equal(err.constructor, Class, `${err.stack}`);
  assert.equal(err.name, Class.name);
  return err;
}

test('a book keeps every digit', async () => {
  const [b, server] = await ask(answer(BOOK));
  assert.deepEqual(b.bids, [['64073.00', '0.58849577'], ['64072.9', '0.1']]);
  assert.deepEqual([b.mid, b.spread, b.nonce, b.stale], ['64073.05', '0.1', 7, false]);
  assert.equal(server.requests[0].split(' ')[1], '/v1/exchanges/okx/orderbook?symbol=BTC%2FUSDT&depth=2&max_age_ms=2000&require=live');
});

test('a debt is where something is owed', async () => {
  const rows = { BTC: { free: '0', used: '0', total: '-0.250', debt: '0.250' }, USDT: { free: '5', used: '0', total: '5' } };
  const said = { exchange: 'okx', account: 'main', account_type: 'trading', balances: rows, requested_at: '', received_at: '', timestamp: null };
  const [b] = await ask(answer(said), { call: (gw) => gw.balance('okx') });
  assert.deepEqual([b.balances.BTC.debt, b.balances.BTC.total, b.balances.USDT.debt], ['0.250', '-0.250', null]);
});

test('numbers are compared and halved as they are', async () => {
  const up = ['-10', '-9.5', '0', '0.00000001', '0.1', '0.10000000000000000001', '0.2', '1', '9.99', '10.5', '10.50001', '100', '123456789012345678901234567890'];
  for (const [i, a] of up.entries()) {
    for (const [j, b] of up.entries()) assert.equal(Math.sign(client.compareNumbers(a, b)), Math.sign(i - j), `${a} ${b}`);
  }
  assert.equal(client.compareNumbers('1.50', '01.5'), 0);
  assert.equal(client.compareNumbers('-0.0', '0'), 0);
  for (const wrong of ['', '1e5', '.5', '5.', 'NaN', '1_0', 5, null]) assert.throws(() => client.compareNumbers(wrong, '1'));
  const [b] = await ask(answer({ ...BOOK, bids: [[`0.${'0'.repeat(40)}1`, '1']], asks: [['123456789012345678901234567890', '1']] }));
  assert.equal(b.mid, `61728394506172839450617283945.${'0'.repeat(41)}5`);
  const [one] = await ask(answer({ ...BOOK, bids: [] }));
  assert.deepEqual([one.mid, one.spread], [null, null]);
});

test('the age goes on', async () => {
  const [b] = await ask(answer(BOOK));
  const first = b.freshness.ageMs;
  assert.ok(first >= 42);
  await new Promise((resolve) => { setTimeout(resolve, 5); });
  assert.ok(b.freshness.ageMs > first);
  assert.ok(b.freshness.olderThan(42) && !b.freshness.olderThan(3_600_000));
});

test('the key is sent and never shown', async () => {
  const [, server] = await ask(answer(BOOK), { key: 'gw_example_secret' });
  assert.match(server.requests[0], /\r\nauthorization: Bearer gw_example_secret\r\n/i);
  assert.doesNotMatch(JSON.stringify(new Gateway(server.url, { key: 'gw_example_secret' })), /secret/);
  assert.throws(() => new Gateway(server.url, { key: 'gw_example_secret\r\nX: y' }), (e) => !e.message.includes('secret'));
});

test('an address that is none is refused at once', () => {
  for (const url of ['127.0.0.1:8080', 'ftp://host', 'http://', 'http://user:word@host', 'http://host?x=1']) assert.throws(() => new Gateway(url), TypeError);
});

test('a path before the routes is kept, and an exchange cannot leave its place in it', async () => {
  const server = await canned(answer({ status: 'ok' }));
  await new Gateway(`${server.url}/gateway/`).live();
  await new Gateway(server.url).status('okx/../../admin?x#y').catch(() => {});
  await server.close();
  assert.deepEqual(server.requests.map((r) => r.split(' ')[1]), ['/gateway/livez', '/v1/exchanges/okx%2F..%2F..%2Fadmin%3Fx%23y/status']);
});

test('what is not as documented is a bad answer', async () => {
  const but = (fields) => answer({ ...BOOK, ...fields });
  for (const wrong of [
    answer(Buffer.from([0xff, 0x7b])), answer('{'), answer('[]'), answer('['.repeat(100_000)), answer('NaN'), answer('{}'), answer('null'),
    but({ bids: null }), but({ bids: [['1']] }), but({ bids: [['1', 2]] }), but({ bids: [['NaN', '1']] }), but({ bids: [['1e5', '1']] }),
    but({ bids: [['-1', '1']] }), but({ bids: [['1'.repeat(600), '1']] }), but({ bids: [['\u0661', '1']] }), but({ freshness: { ...FRESH, age_ms: true } }),
    but({ freshness: { ...FRESH, status: 7 } }), but({ complete: 'yes' }), but({ depth: '2' }), but({ stale: undefined }),
  ]) {
    const err = await refused(wrong, client.BadAnswer);
    assert.equal(err.retryable, false);
    assert.ok(err.message.length < 300);
  }
});

test('a problem is an error of its code', async () => {
  const e = await refused(problem(503, 'book_too_stale', {
    ccxt_class: 'ExchangeNotAvailable', exchange: 'okx', retryable: true, retry_after_ms: 3000, circuit: 'open', reason: 'timeout', age_ms: 12345,
  }), client.BookTooStale);
  assert.ok(e instanceof GatewayError && e instanceof Error);
  assert.deepEqual([e.code, e.status, e.ccxtClass, e.origin, e.exchange], ['book_too_stale', 503, 'ExchangeNotAvailable', 'gateway', 'okx']);
  assert.deepEqual([e.retryable, e.retryAfterMs, e.circuit, e.reason, e.ageMs, e.requestId], [true, 3000, 'open', 'timeout', 12345, 'r-1']);
  assert.equal(e.message, '[book_too_stale] okx: A detail. (retry after 3 s, request r-1)');
  const p = await refused(problem(400, 'unknown_parameter', { parameter: 'dept', allowed: ['symbol', 'depth'] }), client.UnknownParameter);
  assert.deepEqual([p.parameter, p.allowed, p.retryable, p.retryAfterMs], ['dept', ['symbol', 'depth'], false, null]);
});

test('each exchange that did not answer says why', async () => {
  const row = { exchange: 'okx', problem: { code: 'circuit_open', detail: 'No.', retryable: true, retry_after_ms: 2000 } };
  const e = await refused(problem(503, 'price_unavailable', { venues: [row, { exchange: 1 }, null] }), client.PriceUnavailable);
  assert.deepEqual(Object.entries(e.venues).map(([k, v]) => [k, v.constructor, v.retryAfterMs]), [['okx', client.CircuitOpen, 2000]]);
});

test('a code that nobody knows, and names that objects have, break nothing', async () => {
  for (const code of ['lunar_eclipse', 'constructor', '__proto__', 'toString']) {
    const e = await refused(problem(503, code, { ccxt_class: 'OnMaintenance', retryable: true, retry_after_ms: 1000 }), GatewayError);
    assert.deepEqual([e.code, e.ccxtClass, e.retryAfterMs], [code, 'OnMaintenance', 1000]);
  }
});

test('fields of a wrong type lose nothing else', async () => {
  const e = await refused(problem(503, 'circuit_open', { retryable: true, retry_after_ms: 'soon', detail: null, venues: {}, allowed: [1] }, 'Retry-After: 7'), client.CircuitOpen);
  assert.deepEqual([e.retryAfterMs, e.detail, { ...e.venues }, e.allowed], [7000, 'Title', {}, []]);
});

test('a proxy without a gateway behind it is worth another try, another server is not', async () => {
  const e = await refused(answer('<html>', '502 Bad Gateway', 'text/html', 'Retry-After: 5'), client.GatewayUnreachable);
  assert.deepEqual([e.status, e.retryable, e.retryAfterMs, e.code], [502, true, 5000, 'gateway_unreachable']);
  await refused(answer('{', '503 Busy', 'application/problem+json'), client.GatewayUnreachable);
  assert.equal((await refused(answer('<html>', '404 Not Found', 'text/html'), client.BadAnswer)).retryable, false);
  await refused('SSH-2.0-OpenSSH\r\n', client.GatewayUnreachable);
});

test('no redirect is followed: a key is for the gateway alone', async () => {
  const other = await canned(answer(BOOK));
  const e = await ask(answer('', '302 Found', 'text/html', `Location: ${other.url}/`), { key: 'gw_example_secret' }).catch((err) => err);
  await other.close();
  assert.ok(e instanceof client.GatewayUnreachable && !e.message.includes('secret'));
  assert.equal(other.dialled, 0);
});

test('an answer that breaks off is never half an answer', async () => {
  const whole = answer(BOOK);
  for (const cut of [0, 20, whole.length - 1]) assert.equal((await refused(whole.subarray(0, cut), client.GatewayUnreachable)).retryable, true);
  await refused('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":', client.GatewayUnreachable);
});

test('nobody there', async () => {
  const s = createServer().listen(0, '127.0.0.1');
  await once(s, 'listening');
  const { port } = s.address();
  s.close();
  await once(s, 'close');
  await assert.rejects(new Gateway(`http://127.0.0.1:${port}`).live(), client.GatewayUnreachable);
});

test('the timeout bounds the whole answer', async () => {
  const slow = ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n', ...Array(40).fill([' ', 100]).flat()];
  for (const late of [[5000], slow]) {
    const e = await refused(late, client.GatewayTimeout, { timeoutMs: 300 });
    assert.equal(e.retryable, true);
  }
});

test('a signal ends a request with its own reason', async () => {
  const why = new Error('enough');
  await assert.rejects(ask([5000], { call: (gw) => askBook(gw, { signal: AbortSignal.abort(why) }) }), (e) => e === why);
  const later = new AbortController();
  setTimeout(() => later.abort(why), 50);
  await assert.rejects(ask([5000], { call: (gw) => askBook(gw, { signal: later.signal }) }), (e) => e === why);
});

test('what is declared is what there is', () => {
  const declared = [...readFileSync(new URL('../exchange-gateway.d.ts', import.meta.url), 'utf8').matchAll(/^export (?:const|class|function) (\w+)/gm)].map((m) => m[1]);
  assert.deepEqual(declared.sort(), Object.keys(client).sort());
  const methods = [...readFileSync(new URL('../exchange-gateway.d.ts', import.meta.url), 'utf8').split('export class Gateway {')[1].matchAll(/^ {2}(\w+)\(/gm)].map((m) => m[1]);
  assert.deepEqual(methods.sort(), Object.getOwnPropertyNames(Gateway.prototype).sort());
});

test('an option that nobody knows is refused, not dropped', async () => {
  const server = await canned(answer(BOOK));
  const gw = new Gateway(server.url);
  const age = ['maxAgeMs', 'signal'], calls = {
    exchanges: [[], ['signal']], orderBook: [['okx', 'BTC/USDT'], ['depth', 'requireLive', ...age]], ticker: [['okx', 'BTC/USDT'], ['requireLive', ...age]],
    tickers: [['okx', ['BTC/USDT']], ['signal']], markets: [['okx'], ['signal']], status: [['okx'], ['signal']], balance: [['okx'], ['account', 'wallet', 'signal']],
    orderBooks: [['BTC/USDT'], ['depth', ...age]], price: [['BTC/USDT'], ['exchanges', ...age]], circuits: [[], ['signal']], errors: [[], ['signal']],
    openapi: [[], ['signal']], ready: [[], ['signal']], live: [[], ['signal']],
    watchOrderBook: [['okx', 'BTC/USDT'], ['depth', 'everyMs', 'silenceMs', 'signal']], watchCircuits: [[], ['silenceMs', 'signal']],
  };
  const methods = Object.getOwnPropertyNames(Gateway.prototype).filter((name) => name !== 'constructor');
  assert.deepEqual(methods.sort(), Object.keys(calls).sort(), 'each method is tried');
  const call = async (name, options) => {
    const got = gw[name](...calls[name][0], options);
    return name.startsWith('watch') ? got.next() : got;
  };
  for (const [name, [, allowed]] of Object.entries(calls)) {
    for (const wrong of ['max_age_ms', 'maxAge', 'Signal']) {
      await assert.rejects(call(name, { [wrong]: 1000 }), (err) => err instanceof TypeError && err.message.includes(wrong) && err.message.includes(name)
        && allowed.every((a) => err.message.includes(a)), `${name} ${wrong}`);
    }
    for (const wrong of ['gw_example_not-a-key', 5, null, [], true]) {
      await assert.rejects(call(name, wrong), (err) => err instanceof TypeError && err.message.includes('object') && !err.message.includes('gw_'), `${name} ${wrong}`);
    }
  }
  for (const wrong of ['gw_example_not-a-key', { Key: 'gw_example_not-a-key' }, { timeout: 5 }, null]) {
    assert.throws(() => new Gateway(server.url, wrong), (err) => err instanceof TypeError && err.message.includes('timeoutMs') && !err.message.includes('gw_'));
  }
  assert.equal(server.requests.length, 0, 'nothing was asked');
  await server.close();
});

test('why the gateway was not reached', async () => {
  const at = createServer().listen(0, '127.0.0.1');
  await once(at, 'listening');
  const { port } = at.address();
  await new Promise((resolve) => { at.close(resolve); });
  const why = (fetch) => new Gateway(`http://127.0.0.1:${port}`, { fetch }).live().then(() => assert.fail('it was answered'), (e) => e);
  const fails = (cause) => () => Promise.reject(Object.assign(new TypeError('fetch failed'), { cause }));
  for (const [fetch, words] of [
    [globalThis.fetch, 'not reached: connection refused (ECONNREFUSED)'],
    [fails(new AggregateError([Object.assign(new Error('::1'), { code: 'ECONNREFUSED' })])), 'not reached: connection refused (ECONNREFUSED)'],
    [fails(Object.assign(new Error('x'), { code: 'ECONNRESET' })), 'broke: ECONNRESET'],
    [fails(new Error('bad port')), 'not reached: bad port'],
    [fails(undefined), 'does not say why'],
  ]) {
    const err = await why(fetch);
    assert.ok(err instanceof client.GatewayUnreachable && err.message.includes(words) && !err.message.includes('TypeError'), err.message);
  }
});
