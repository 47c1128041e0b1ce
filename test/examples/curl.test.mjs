// examples/curl: what it prints while all is well, and in an outage.
import { describe, it, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { demo, example, run, tidy } from './stage.mjs';

/** answers are what the script printed, by title: the status and the document. */
function answers(text) {
  const all = new Map();
  for (const part of text.split('\n# ').slice(1)) {
    const [title, ...lines] = part.trimEnd().split('\n');
    all.set(title, lines);
  }
  return (title) => {
    const lines = all.get(title);
    assert.ok(lines, `no "${title}" in:\n${text}`);
    return { status: Number(lines.at(-1)), body: JSON.parse(lines.slice(0, -1).join('\n')) };
  };
}

describe('curl', () => {
  let gateway, ask;
  after(tidy);
  before(async () => {
    gateway = await demo();
    await gateway.live('okx', 'BTC/USDT');
    ask = (env = {}) => run(example('curl', 'ask.sh'), [], { env: { GATEWAY_URL: gateway.public, GATEWAY_KEY: gateway.key, ...env } });
  });

  it('all is well', async () => {
    const text = await ask();
    const got = answers(text);
    for (const title of ['a book, live or not', 'a book of at most 2 s', 'a live book']) {
      const { status, body } = got(title);
      assert.equal(status, 200, title);
      assert.equal(body.stale, false, title);
      assert.equal(body.bids.length, 2, title);
      assert.equal(typeof body.bids[0][0], 'string', title);
    }
    const ticker = got("a ticker in ccxt's form").body;
    assert.equal(ticker.symbol, 'BTC/USDT');
    assert.equal(typeof ticker.bid, 'number');
    assert.equal(ticker.info.freshness.status, 'live');
    const price = got('a price, with a second exchange to fall back on').body;
    assert.equal(price.exchange, 'okx');
    assert.equal(price.fallback, false);
    const balance = got('a balance').body;
    assert.match(balance.balances.BTC.free, /^\d+(\.\d+)?$/);
    const mistyped = got('a parameter that is mistyped');
    assert.equal(mistyped.status, 400);
    assert.equal(mistyped.body.code, 'unknown_parameter');
    const stream = text.slice(text.indexOf('# the book as it changes'));
    assert.match(stream, /^event: status$/m);
    assert.match(stream, /^event: snapshot$/m);
    assert.match(stream, /^data: \{.*"type":"snapshot"/m);
    assert.doesNotMatch(text, new RegExp(gateway.key), 'the key is not shown');
  });

  it('without a key', async () => {
    const { status, body } = answers(await ask({ GATEWAY_KEY: '' }))('a balance');
    assert.equal(status, 401);
    assert.equal(body.code, 'unauthenticated');
  });

  it('in an outage', async () => {
    await gateway.breaks('okx', { kind: 'maintenance' });
    await gateway.stale('okx', 'BTC/USDT');
    const got = answers(await ask());
    await gateway.heals('okx');
    const book = got('a book, live or not');
    assert.equal(book.status, 200);
    assert.equal(book.body.stale, true);
    assert.ok(book.body.freshness.age_ms > 0);
    assert.match(book.body.freshness.reason, /^(maintenance|circuit_open|unavailable|timeout)$/);
    assert.equal(got('a live book').status, 503);
    assert.equal(got('a live book').body.code, 'not_live');
    const balance = got('a balance');
    assert.equal(balance.status, 503);
    assert.ok(balance.body.retry_after_ms >= 1000);
    assert.equal(balance.body.balances, undefined, 'no numbers');
    const price = got('a price, with a second exchange to fall back on').body;
    assert.equal(price.exchange, 'binance');
    assert.equal(price.fallback, true);
  });
});
