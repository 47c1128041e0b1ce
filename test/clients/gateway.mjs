// A gateway on simulated exchanges, as `bin/gateway demo` runs it, and ccxt clients of its facade: each test file has one of
// its own, so that what one does to an exchange meets no other.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ccxt from 'ccxt';

const program = fileURLToPath(new URL('../../bin/gateway', import.meta.url));
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export class Gateway {
  // start runs a demo without outages of its own. settings are those of the configuration, as path=value.
  static async start(...settings) {
    const g = new Gateway();
    g.dir = mkdtempSync(join(tmpdir(), 'gateway-clients-'));
    const ready = join(g.dir, 'ready.json');
    const free = '127.0.0.1:0';
    g.process = spawn(program, [
      'demo', '--every', '24h', '--listen', free, '--admin-listen', free, '--ready-file', ready, ...settings.flatMap((s) => ['--set', s]),
    ], { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, TMPDIR: g.dir } });
    g.ended = new Promise((resolve) => { g.process.once('exit', resolve); g.process.once('error', resolve); });
    let over = false;
    g.ended.then(() => { over = true; });
    for (let i = 0; i < 600 && !existsSync(ready); i++) { // 30 s
      assert.ok(!over, 'the demo did not start');
      await sleep(50);
    }
    Object.assign(g, JSON.parse(readFileSync(ready, 'utf8')));
    g.facade = `${g.public}/compat/binance`;
    return g;
  }

  async stop() {
    this.process.kill('SIGTERM');
    await this.ended;
    rmSync(this.dir, { recursive: true, force: true });
  }

  // keys makes a key for each client, with the client's settings, as an operator would.
  keys(clients) {
    const state = readdirSync(this.dir).find((name) => name.startsWith('exchange-gateway-demo-'));
    const file = join(this.dir, state, 'keys.yaml');
    const made = Object.keys(clients).map((client) => {
      const said = execFileSync(program, ['key', 'new', '--set', `keys_file=${file}`, '--client', client, '--scope', 'market:read'], { encoding: 'utf8' });
      return [client, said.match(/gw_\w+/)[0]];
    });
    appendFileSync(file, `clients: ${JSON.stringify(clients)}\n`);
    return Object.fromEntries(made);
  }

  // tell tells the simulated exchanges something, or asks them.
  async tell(method, path, body) {
    const res = await fetch(this.control + path, { method, body: body && JSON.stringify(body) });
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
    return res.json();
  }

  inject(fault) { return this.tell('POST', '/v1/faults/binance', fault); }

  heal() { return this.tell('DELETE', '/v1/faults/binance'); }

  stats() { return this.tell('GET', '/v1/stats/binance'); }

  // truth is the simulator's book of a symbol, by its number or at a moment.
  async truth(market, depth, { nonce, at }) {
    const when = nonce === undefined ? `at=${encodeURIComponent(new Date(at).toISOString())}` : `seq=${nonce}`;
    const book = await this.tell('GET', `/v1/book/binance?symbol=${market}&depth=${depth}&${when}`);
    const numbers = (levels) => levels.map(({ price, size }) => [Number(price), Number(size)]);
    return { bids: numbers(book.bids), asks: numbers(book.asks), time: Date.parse(book.time) };
  }

  // quotes are the best bid and ask that the simulator had in the last ms before now, as texts.
  async quotes(market, ms) {
    const all = new Set();
    for (let at = Date.now(); at > Date.now() - ms; at -= 100) {
      const { bids, asks } = await this.truth(market, 1, { at });
      all.add(`${bids[0]} ${asks[0]}`);
    }
    return all;
  }

  // ccxt is a client of the facade: with nothing changed but its URLs and its own options, spot only and no currencies.
  ccxt(more = {}) { return binance(this.facade, more); }

  // direct is the same client on the simulated exchange itself.
  direct() { return binance(this.venues.binance); }
}

function binance(url, more = {}) {
  const client = new ccxt.binance({
    options: { defaultType: 'spot', fetchMarkets: { types: ['spot'] }, fetchCurrencies: false, fetchMargins: false }, ...more,
  });
  Object.assign(client.urls.api, { public: `${url}/api/v3`, private: `${url}/api/v3`, sapi: `${url}/sapi/v1` });
  return client;
}

// checkedBook reads a book and compares it with the simulator's of that number. Of a book that the gateway follows by its
// changes it knows the best 1,000 levels of the moment when it began, and a few less once the price has moved.
export async function checkedBook(gateway, client, symbol, limit) {
  const book = await client.fetchOrderBook(symbol, limit);
  const truth = await gateway.truth(client.market(symbol).id, Math.min(limit ?? 100, 1000), book);
  for (const side of ['bids', 'asks']) {
    const levels = book[side].map((l) => [...l]);
    const known = limit < 1000 || limit === undefined ? truth[side].length : Math.min(truth[side].length, 800);
    assert.ok(levels.length >= known, `${levels.length} ${side} of ${symbol}, ${limit}`);
    assert.deepEqual(levels, truth[side].slice(0, levels.length), `${side} of ${symbol}, ${limit}`);
  }
  return { ...book, time: truth.time };
}

// exactly is for assert.rejects: the class itself, not one above it.
export const exactly = (kind) => (err) => {
  assert.equal(err.constructor.name, kind.name, err.message);
  return true;
};

// eventually tries until it succeeds, for at most ms.
export async function eventually(ms, tried) {
  const end = Date.now() + ms;
  for (;;) {
    try {
      return await tried();
    } catch (err) {
      if (Date.now() > end) throw err;
      await sleep(100);
    }
  }
}

export { ccxt, sleep };
