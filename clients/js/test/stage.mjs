// What the tests play against: the demo, a relay that can be cut, and a server that says what it is told to say.
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const PATIENCE = 30_000; // ms, on a loaded machine

/** Waits for ok() to give something true and returns it. */
export async function until(what, ok) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await wait(50)) {
    const got = await ok();
    if (got) return got;
  }
  throw new Error(`${what}: not within ${PATIENCE} ms`);
}

/** The gateway on simulated exchanges, with settings (`path=value`): that of GATEWAY_DEMO, a ready file, unless own asks for another. */
export async function demo({ own = false, settings = [] } = {}) {
  let path = own ? undefined : process.env.GATEWAY_DEMO, dir, child;
  if (!path) {
    dir = await mkdtemp(join(tmpdir(), 'exchange-gateway-js-'));
    path = join(dir, 'ready.json');
    const free = '127.0.0.1:0';
    child = spawn(fileURLToPath(new URL('../../../bin/gateway', import.meta.url)), [
      'demo', '--listen', free, '--admin-listen', free, '--control', free, '--every', '24h', '--ready-file', path,
      ...settings.flatMap((s) => ['--set', s]),
    ], { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  const at = await until('the demo listens', async () => {
    if (child && child.exitCode !== null) throw new Error('the demo ended by itself');
    return readFile(path, 'utf8').then(JSON.parse, () => undefined);
  });
  async function tell(method, path, body) {
    const res = await fetch(at.control + path, { method, body: body && JSON.stringify(body) });
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
    return res.json();
  }
  return {
    ...at,
    fault: (exchange, what) => tell('POST', `/v1/faults/${exchange}`, what),
    /**
     * Ends the faults and waits until the exchange is asked again. A circuit stays open for some seconds, and closes only when
     * somebody asks: for a balance, and for a book that no stream has.
     */
    async heal(gw, exchange) {
      await tell('DELETE', `/v1/faults/${exchange}`);
      const symbol = exchange === 'coinbase' ? 'BTC/USD' : 'BTC/USDT';
      const well = async () => {
        await gw.balance(exchange);
        await gw.orderBook(exchange, 'ETH/USDT', { depth: 1, maxAgeMs: 0 });
        const circuits = Object.fromEntries((await gw.status(exchange)).circuits.map((c) => [c.class, c.state]));
        return ['market_data', 'account', 'stream'].every((c) => circuits[c] === 'closed') && !(await gw.orderBook(exchange, symbol)).stale;
      };
      await until(`${exchange} is well`, () => well().catch(() => false));
    },
    /** The exchange's own book of that sequence, as many levels as the book may have. */
    async truth(exchange, book) {
      const b = await tell('GET', `/v1/book/${exchange}?${new URLSearchParams({ symbol: book.exchange_symbol, seq: String(book.nonce), depth: String(book.depth) })}`);
      return [b.bids, b.asks].map((side) => (side ?? []).map((l) => [l.price, l.size]));
    },
    /** Ends the gateway without a word. */
    async crash() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
    async close() {
      if (!child) return;
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        child.kill();
        await ended;
      }
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A TCP server on a free port whose connections can be cut. */
async function listen(serve) {
  const open = new Set();
  const it = { dialled: 0, ended: 0 };
  const server = createServer((conn) => {
    it.dialled++;
    conn.on('close', () => { it.ended++; });
    for (const s of [conn, ...(serve(conn, it.dialled) ?? [])]) {
      open.add(s);
      s.on('close', () => open.delete(s));
      s.on('error', () => {}); // it was cut, or the client left
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.cut = () => { for (const s of open) s.destroy(); };
  it.close = async () => {
    server.close();
    it.cut();
    await once(server, 'close');
  };
  it.open = open;
  return it;
}

/** Passes bytes on to the gateway, until it is cut. hold(true) keeps back what the gateway sends. */
export async function relay(target) {
  const { hostname, port } = new URL(target);
  const ups = new Set();
  let held = false;
  const it = await listen((conn) => {
    const up = connect(Number(port), hostname);
    conn.pipe(up);
    up.pipe(conn);
    if (held) up.pause();
    ups.add(up);
    up.on('close', () => { ups.delete(up); conn.destroy(); });
    conn.on('close', () => up.destroy());
    return [up];
  });
  it.hold = (on) => {
    held = on;
    for (const up of ups) on ? up.pause() : up.resume();
  };
  return it;
}

/** Answers each connection with the next of some texts, and keeps what was asked. The last answer is for all further ones. A number
 * among the parts of an answer is ms to wait, a function what to wait for. */
export async function canned(...answers) {
  const requests = [];
  const it = await listen((conn, number) => {
    let head = '';
    conn.on('data', async (part) => {
      const before = head.includes('\r\n\r\n');
      head += part;
      if (before || !head.includes('\r\n\r\n')) return;
      requests.push(head);
      for (const part of [answers[Math.min(number, answers.length) - 1]].flat()) {
        if (typeof part === 'number') await wait(part, undefined, { ref: false });
        else if (typeof part === 'function') await part();
        else conn.write(part);
      }
      conn.end();
    });
  });
  it.requests = requests;
  return it;
}

/** A whole answer of HTTP. */
export function answer(body, status = '200 OK', type = 'application/json', ...more) {
  const text = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return Buffer.concat([Buffer.from([`HTTP/1.1 ${status}`, `Content-Type: ${type}`, `Content-Length: ${text.length}`, 'Connection: close', ...more, '', ''].join('\r\n')), text]);
}

/** A problem document as the gateway writes it. */
export function problem(status, code, fields = {}, ...more) {
  return answer({
    type: `/v1/errors#${code}`, title: 'Title', status, detail: 'A detail.', code, origin: 'gateway', ccxt_class: 'ExchangeError', exchange: null,
    retryable: false, retry_after_ms: null, circuit: null, request_id: 'r-1', ...fields,
  }, `${status} Status`, 'application/problem+json', ...more);
}

export const FRESH = {
  status: 'live', source: 'rest', age_ms: 42, confirmed_at: '2026-11-29T02:00:00.123Z', changed_at: null, reason: null, circuit: 'closed', exchange_lag_ms: null,
};
export const BOOK = {
  exchange: 'okx', symbol: 'BTC/USDT', exchange_symbol: 'BTC-USDT', stale: false, freshness: FRESH, depth: 2, complete: true, timestamp: 1795917600118,
  datetime: '2026-11-29T02:00:00.118Z', nonce: 7, bids: [['64073.00', '0.58849577'], ['64072.9', '0.1']], asks: [['64073.10', '1.07909367']],
};

export const STREAM = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1000\n\n';

/** One event of a stream, with what is always there. */
export function event(kind, fields = {}, id = undefined) {
  const version = { seq: 1, prev_seq: null, complete: true, exchange_seq: 70, exchange_time: null, changed_at: null, conflated: 0, bids: [], asks: [] };
  const d = {
    type: kind, channel: 'orderbook', exchange: 'okx', symbol: 'BTC/USDT', exchange_symbol: 'BTC-USDT', depth: 5, epoch: 'e.1', status: 'live',
    confirmed_at: '2026-11-29T02:00:00.1Z', sent_at: '2026-11-29T02:00:00.35Z',
    ...(kind === 'snapshot' || kind === 'update' ? version : { reason: null, since: null }), ...fields,
  };
  return `${id ? `id: ${id}\n` : ''}event: ${kind}\ndata: ${JSON.stringify(d)}\n\n`;
}

export const SNAPSHOT = event('snapshot', { bids: [['10.0', '1'], ['9.5', '2']], asks: [['10.5', '3']] }, 'e.1-1');
