// ccxt, unchanged but for URLs, keys and its own options, must take the simulated exchanges for the real ones: what it
// reads must be the simulator's own book and balance, and what goes wrong must raise ccxt's own class for it.
import { before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { binance, okx, coinbase, ccxt, control, exactly, inject, numbers } from './venues.mjs';

// What ccxt raises is ccxt's own reading of each exchange, not ours: it takes Binance's 429 for a DDoSProtection, and its
// -1016 ("no longer available") for a bad request; it knows Binance's maintenance by the status endpoint and by one text.
// It has no class for OKX's 50119 (unknown key), so there the secret is wrong.
const venues = [
  {
    id: 'binance', make: binance, keys: ['binance-hmac', 'binance-ed25519', 'binance-rsa'], symbol: 'BTC/USDT', market: 'BTCUSDT',
    strange: (c) => { c.apiKey = c.apiKey.replace(/.$/, 'F'); }, badSymbol: ccxt.BadSymbol, limit: ccxt.DDoSProtection, maintenance: ccxt.BadRequest,
  },
  {
    id: 'okx', make: okx, keys: ['okx'], symbol: 'BTC/USDT', market: 'BTC-USDT',
    strange: (c) => { c.secret = c.secret.replace(/.$/, 'F'); }, badSymbol: ccxt.BadSymbol, limit: ccxt.RateLimitExceeded, maintenance: ccxt.OnMaintenance,
  },
  {
    id: 'coinbase', make: coinbase, keys: ['coinbase-es256', 'coinbase-ed25519'], symbol: 'BTC/USD', market: 'BTC-USD',
    strange: (c) => { c.apiKey = c.apiKey.replace(/.$/, 'f'); }, badSymbol: ccxt.BadRequest, limit: ccxt.RateLimitExceeded,
    maintenance: ccxt.ExchangeNotAvailable,
  },
];

for (const v of venues) {
  describe(v.id, () => {
    let client;
    before(() => { client = v.make(v.keys[0]); });

    it('fetchMarkets', async () => {
      const markets = await client.fetchMarkets();
      const m = markets.find((x) => x.symbol === v.symbol);
      assert.ok(markets.length >= 12, `${markets.length} markets`);
      assert.ok(m?.active && m.spot, `${v.symbol} is active`);
      assert.ok(m.precision.price > 0 && m.precision.amount > 0);
    });

    it('fetchOrderBook', async () => {
      const book = await client.fetchOrderBook(v.symbol, 20);
      assert.equal(book.bids.length, 20);
      assert.equal(book.asks.length, 20);
      assert.ok(book.bids[0][0] < book.asks[0][0], 'not crossed');
      const when = book.nonce ? `seq=${book.nonce}` : `at=${encodeURIComponent(new Date(book.timestamp).toISOString())}`;
      const truth = await control('GET', `/v1/book/${v.id}?symbol=${v.market}&depth=20&${when}`);
      assert.deepEqual(book.bids.map((l) => l.slice(0, 2)), numbers(truth.bids));
      assert.deepEqual(book.asks.map((l) => l.slice(0, 2)), numbers(truth.asks));
    });

    it('fetchTicker', async () => {
      const t = await client.fetchTicker(v.symbol);
      assert.equal(t.symbol, v.symbol);
      assert.ok(t.bid > 0 && t.ask > t.bid, `${t.bid} ${t.ask}`);
    });

    for (const key of v.keys) {
      it(`fetchBalance with ${key}`, async () => {
        const b = await v.make(key).fetchBalance();
        assert.ok(b.BTC.free > 0 && b.BTC.used > 0, 'BTC is held, some of it locked');
        assert.ok(Math.abs(b.BTC.total - b.BTC.free - b.BTC.used) < 1e-12);
      });
    }

    it('a symbol that is not listed', async () => {
      await client.loadMarkets();
      await assert.rejects(client.fetchOrderBook('NO/SUCHCOIN'), exactly(ccxt.BadSymbol), 'ccxt itself refuses it');
      const market = { ...client.market(v.symbol), id: v.market.replace('BTC', 'NOPE'), symbol: 'NOPE/USD' };
      client.markets['NOPE/USD'] = market;
      await assert.rejects(client.fetchOrderBook('NOPE/USD'), exactly(v.badSymbol), 'the exchange refuses it');
      delete client.markets['NOPE/USD'];
    });

    it('a key that the exchange refuses', async () => {
      const stranger = v.make(v.keys[0]);
      v.strange(stranger);
      await assert.rejects(stranger.fetchBalance(), exactly(ccxt.AuthenticationError));
    });

    // during injects a fault for as long as what is tried takes.
    const during = async (fault, tried) => {
      const { id } = await inject(v.id, fault);
      try {
        await tried();
      } finally {
        await control('DELETE', `/v1/faults/${v.id}/${id}`);
      }
    };
    const refused = (kind) => () => assert.rejects(client.fetchOrderBook(v.symbol), exactly(kind));

    it('429', () => during({ kind: 'rate_limit', class: 'market_data' }, refused(v.limit)));
    it('429 with Retry-After', () => during({ kind: 'rate_limit', class: 'market_data', retry_after: '1s' }, refused(v.limit)));
    it('maintenance', () => during({ kind: 'maintenance', class: 'market_data' }, refused(v.maintenance)));

    if (v.id === 'binance') {
      it('418', () => during({ kind: 'ban', class: 'market_data' }, refused(ccxt.DDoSProtection)));
      it('maintenance by its status endpoint', () => during({ kind: 'maintenance' }, async () => {
        assert.equal((await client.fetchStatus()).status, 'maintenance');
      }));
      it('maintenance by the text that ccxt knows', () => during(
        { kind: 'status', status: 503, content_type: 'application/json', body: '{"code":1,"msg":"System is under maintenance."}' },
        refused(ccxt.OnMaintenance),
      ));
    }
  });
}
