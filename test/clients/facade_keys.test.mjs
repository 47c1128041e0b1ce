// Keys on the facade: where a bot may put one, what its client may spend, and the only way to a book of a while ago.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Gateway, ccxt, eventually, sleep } from './gateway.mjs';

const depth = '/api/v3/depth?symbol=BTCUSDT&limit=5';
const AGE = 12_000; // ms that the client `patient` accepts

describe('keys on the facade', () => {
  let gateway, keys;
  const ask = (path, headers) => fetch(gateway.facade + path, { headers });
  before(async () => {
    gateway = await Gateway.start();
    keys = gateway.keys({ small: { requests_per_second: 2 }, patient: { max_age_ms: AGE }, other: { requests_per_second: 100 } });
    await eventually(20_000, async () => assert.equal((await ask(depth, { 'X-API-Key': keys.patient })).status, 200)); // the file is followed
  });
  after(() => gateway?.stop());

  it('in each header', async () => {
    for (const headers of [{ Authorization: `Bearer ${keys.patient}` }, { 'X-API-Key': keys.patient }, { 'X-MBX-APIKEY': keys.patient }]) {
      const res = await ask(depth, headers);
      assert.equal(res.status, 200);
      assert.match(res.headers.get('ratelimit-policy'), /"requests";q=[0-9]+;w=1/, Object.keys(headers)[0]);
    }
    const own = await ask(depth, { 'X-MBX-APIKEY': 'EXAMPLE-KEY-OF-BINANCE' }); // a bot's own key of the exchange is none of ours
    assert.equal(own.status, 200);
    const client = gateway.ccxt({ headers: { 'X-API-Key': keys.patient } });
    assert.ok((await client.fetchOrderBook('BTC/USDT', 5)).bids.length === 5);
  });

  it('a wrong one', async () => {
    const wrong = keys.patient.replace(/.$/, (c) => (c === 'a' ? 'b' : 'a'));
    const unknown = 'gw_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaa';
    const answers = [];
    for (const key of [wrong, unknown, 'gw_']) {
      const res = await ask(depth, { 'X-MBX-APIKEY': key });
      assert.equal(res.status, 401);
      answers.push(await res.text());
    }
    assert.deepEqual(new Set(answers).size, 1, `which part was wrong is told: ${answers}`);
    assert.equal(JSON.parse(answers[0]).code, -2015);
    const client = gateway.ccxt({ headers: { 'X-API-Key': wrong } });
    await assert.rejects(client.publicGetPing(), (err) => err instanceof ccxt.AuthenticationError);
  });

  it('a client past its requests, and nobody else', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask('/api/v3/ping', { 'X-API-Key': keys.small })));
    const refused = answers.filter((res) => res.status !== 200);
    assert.ok(refused.length > 0, 'of 40 requests at once, 2 a second are granted');
    for (const res of refused) {
      assert.equal(res.status, 429);
      assert.ok(Number(res.headers.get('retry-after')) >= 1);
      assert.equal((await res.json()).code, -1003);
      assert.match(res.headers.get('ratelimit'), /"requests";r=0/);
    }
    assert.equal((await ask('/api/v3/ping', { 'X-API-Key': keys.patient })).status, 200);
    const client = gateway.ccxt({ headers: { 'X-API-Key': keys.small }, enableRateLimit: false });
    await assert.rejects(Promise.all(Array.from({ length: 40 }, () => client.publicGetPing())), (err) => {
      assert.equal(err.constructor.name, 'DDoSProtection', err.message);
      return true;
    });
  });

  it('an outage: a book of a while ago for a client that said an age, and for no other', async () => {
    const patient = gateway.ccxt({ headers: { 'X-API-Key': keys.patient } });
    const other = gateway.ccxt({ headers: { 'X-API-Key': keys.other } });
    await patient.fetchOrderBook('BTC/USDT', 5);
    await other.loadMarkets();
    await gateway.inject({ kind: 'unavailable', for: '120s' });
    const began = Date.now();
    await sleep(3500); // longer than a book is live
    const res = await ask(depth, { 'X-API-Key': keys.patient });
    const book = await res.json();
    assert.equal(res.status, 200, JSON.stringify(book));
    assert.match(res.headers.get('cache-status'), /ttl=-[1-9]/, 'a stale book without a label');
    assert.ok(Number(res.headers.get('age')) >= 2 && Number(res.headers.get('age')) <= AGE / 1000 + 1, res.headers.get('age'));
    const truth = await gateway.truth('BTCUSDT', 5, { nonce: book.lastUpdateId });
    assert.deepEqual(book.bids.map((l) => l.map(Number)), truth.bids);
    await assert.rejects(eventually(0, () => other.fetchOrderBook('BTC/USDT', 5)), (err) => err instanceof ccxt.ExchangeNotAvailable);
    const nobody = await ask(depth, {});
    assert.equal(nobody.status, 503);
    await sleep(Math.max(0, began + AGE + 3000 - Date.now()));
    await assert.rejects(patient.fetchOrderBook('BTC/USDT', 5), (err) => {
      assert.equal(err.constructor.name, 'ExchangeNotAvailable', err.message);
      return true;
    }, 'an older one than it said');
    await gateway.heal();
  });
});
