// ccxt on the gateway's facade while the exchange is broken: it finds an exchange that is not available, never an old book, and
// never a limit or a ban as its own. Each fault meets a gateway of its own: a second outage would be waited out for longer.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Gateway, ccxt, checkedBook, eventually, exactly, sleep } from './gateway.mjs';

for (const kind of ['unavailable', 'maintenance', 'reset', 'hang']) {
  describe(`an outage: ${kind}`, () => {
    let gateway, client;
    before(async () => {
      gateway = await Gateway.start();
      client = gateway.ccxt();
      await client.loadMarkets();
    });
    after(() => gateway?.stop());
    const checked = () => checkedBook(gateway, client, 'BTC/USDT', 20);
    const unanswered = (err) => err instanceof ccxt.ExchangeNotAvailable || err instanceof ccxt.RequestTimeout;

    // A book that is answered is one of the last second before it was asked for: nothing older than that is live.
    it('an exchange that is not available, and no old book', async () => {
      await checked();
      await gateway.inject({ kind, for: '100s' });
      const told = new Set();
      let last;
      // 8 s, or longer where every answer is waited for until the circuit opens.
      const began = Date.now();
      const open = () => told.has('ExchangeNotAvailable') || told.has('OnMaintenance');
      while (Date.now() < began + 8000 || !open() && Date.now() < began + 60_000) {
        const asked = Date.now();
        try {
          const book = await checked();
          assert.ok(asked - book.time < 3000, `a book of ${asked - book.time} ms ago: live is 1000 ms, and a busy machine is late by as much`);
          last = 'a book';
        } catch (err) {
          if (err instanceof assert.AssertionError) throw err;
          assert.ok(unanswered(err), `${err.constructor.name}: ${err.message}`);
          told.add(err.constructor.name);
          last = err;
        }
        await sleep(200);
      }
      assert.ok(last instanceof Error, 'a book after seconds of an outage');
      assert.ok(open(), `in an outage of ${Date.now() - began} ms: ${[...told]}`);
      await assert.rejects(client.fetchTicker('ETH/USDT'), unanswered);
      await assert.rejects(client.fetchOHLCV('ETH/USDT', '1m'), unanswered);
      await assert.rejects(client.fetchTickers(), unanswered);
    });

    it('the list of markets outlives it', async () => {
      const held = client.markets;
      assert.deepEqual(await client.loadMarkets(true), held);
    });

    it('and is over when it is over', async () => {
      await gateway.heal();
      await eventually(90_000, checked);
      await eventually(90_000, () => client.fetchTicker('ETH/USDT'));
    });
  });
}

describe('limits and bans of the gateway at the exchange', () => {
  let gateway, client;
  before(async () => {
    gateway = await Gateway.start();
    client = gateway.ccxt();
    await client.loadMarkets();
  });
  after(() => gateway?.stop());
  const candles = () => client.fetchOHLCV('ETH/USDT', '1m');

  it('a limit is not the caller\'s', async () => {
    await gateway.inject({ kind: 'rate_limit', retry_after: '25s', count: 1, class: 'reference' });
    await assert.rejects(candles(), exactly(ccxt.ExchangeNotAvailable));
    await eventually(90_000, candles);
  });

  it('a ban is not the caller\'s, and nothing is asked in it', async () => { // last: it stays
    await gateway.inject({ kind: 'ban', for: '100s' });
    await assert.rejects(candles(), exactly(ccxt.ExchangeNotAvailable));
    const { requests } = await gateway.stats();
    for (let i = 0; i < 10; i++) await assert.rejects(client.fetchTicker('ETH/USDT'), exactly(ccxt.ExchangeNotAvailable));
    assert.equal((await gateway.stats()).requests, requests, 'requests during a ban');
  });
});
