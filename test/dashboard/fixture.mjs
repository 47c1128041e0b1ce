// A gateway that shows whatever it is told: every state at once, words that want to be markup, five thousand events. What a
// real gateway shows is the subject of the other files; here it is what the page makes of the contract.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const assets = fileURLToPath(new URL('../../internal/dashboard/assets/', import.meta.url));
const types = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
// As the gateway sends it: a Go test holds it to that.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

const SECOND = 1000, HOUR = 3600 * SECOND;
const iso = (t) => new Date(t).toISOString();

/** circuit is a healthy one, or one in the state that is asked for. */
export function circuit(cls, now, more = {}) {
  return {
    class: cls, state: 'closed', isolated: false, probe_due: false, since: iso(now - HOUR), open_until: null, trips: 0, cause_text: '',
    window: { settled: 40, failures: 0, slow: 0, consecutive: 0 },
    thresholds: { consecutive: 5, min_span_ms: 2000, rate: 0.5, slow_share: 0.8, slow_ms: 900, min_settled: 10, window_ms: 30000, timeout_ms: 1500, deadline_ms: 3000, open_min_ms: 5000, open_max_ms: 60000 },
    worst: { since: iso(now - 20 * HOUR), consecutive: 3, failure_share: 0.21, slow_share: 0.02 }, ...more,
  };
}

/** exchange is a healthy one with more. */
export function exchange(id, now, more = {}) {
  const n = 60, column = (f) => Array.from({ length: n }, (_, i) => f(i));
  return {
    id, state: 'closed', level: 'ok', why: '', clients: 'live books and balances', since: iso(now - 3 * HOUR), next_probe_at: null, probe_due: false,
    last_success: iso(now - 300), circuits: ['market_data', 'account'].map((c) => circuit(c, now)),
    overrides: [], gates: [], maintenance: [], failures: [],
    budgets: [{ limit: 'weight', capacity: 6000, share: 4200, used: 1234, waiting: 0, window_ms: 60000 }],
    streams: { connections: 2, last_frame: iso(now - 80), live: 12, syncing: 1, stale: 0, wanted: 13, queued: 0, eta_ms: null },
    served: { live: 900, stale: 40, refused: 3, oldest_ms: 8123 },
    samples: { from: iso(now - 300 * SECOND), step_ms: 5000, attempts: column((i) => 20 + (i % 7)), failures: column((i) => (i % 11 === 0 ? 2 : 0)), refused: column((i) => (i > 50 ? 9 : 0)), retries: column((i) => (i % 9 === 0 ? 1 : 0)), p50_ms: column((i) => (i === 30 ? null : 80 + i)), p99_ms: column((i) => (i === 30 ? null : 240 + 3 * i)) },
    ...more,
  };
}

/** book is one that clients get. */
export function book(exchange, symbol, now, more = {}) {
  return {
    exchange, symbol, status: 'live', source: 'stream', confirmed_at: iso(now - 120), changed_at: iso(now - 400), served_at: iso(now - 50), age_ms: 120, fresh_for_ms: 1000, stale_max_ms: 3600000,
    bid: '64073.00', ask: '64073.10', spread: '0.10', streamed: true, epoch: 'e7', sequence: 66813971942, resyncs: 2, last_resync: iso(now - HOUR), resync_reason: 'gap', streamed_since: iso(now - 5 * HOUR), ...more,
  };
}

/** everything is one exchange in each state, beside each other. */
export function everything(now = Date.now()) {
  const soon = (s) => iso(now + s * SECOND);
  const open = { state: 'open', since: iso(now - 134 * SECOND), open_until: soon(31), trips: 3, cause: 'consecutive', cause_text: '5 failures in a row (timeout)', last_failure: 'timeout' };
  const override = (kind, more) => ({ kind, actor: 'night', reason: 'answers are wrong <b>since</b> 02:00', since: iso(now - 600 * SECOND), until: soon(2700), ...more });
  return {
    instance: 'gw-1', version: 'test', boot: 'b1', now: iso(now), started_at: iso(now - 30 * HOUR), history_since: iso(now - 20 * HOUR), last_event: 'b1-3',
    level: 'degraded', headline: '5 of 8 exchanges degraded: okx open since 2 min 14 s, books stale, balances refused', degraded: ['redis does not answer: nothing is shared'],
    exchanges: [
      exchange('binance', now),
      exchange('okx', now, { state: 'open', level: 'degraded', why: '5 failures in a row (timeout)', clients: 'stale books up to 8 s old; balances refused', next_probe_at: soon(31), circuits: [circuit('market_data', now, open), circuit('reference', now), circuit('account', now, open), circuit('stream', now)], failures: [{ at: iso(now - 9000), op: 'order_book', kind: 'timeout', elapsed_ms: 1500 }, { at: iso(now - 19000), op: 'balances', kind: 'unavailable', status: 503, code: '50001', elapsed_ms: 210 }] }),
      exchange('coinbase', now, { state: 'half_open', level: 'degraded', why: 'a probe is on its way', clients: 'stale books', circuits: [circuit('market_data', now, { state: 'half_open' })] }),
      exchange('kraken', now, { state: 'isolated', level: 'notice', why: 'isolated by night', clients: 'stale books; balances refused', overrides: [override('isolate')], circuits: [circuit('market_data', now, { isolated: true, ...open })] }),
      exchange('bybit', now, { state: 'banned', level: 'degraded', why: 'banned for another 4 min', clients: 'stale books', gates: [{ scope: 'ip', kind: 'banned', until: soon(240) }] }),
      exchange('gemini', now, { state: 'withheld', level: 'notice', why: 'BTC/USD withheld', overrides: [override('withhold', { symbol: 'BTC/USD' })], clients: 'everything but BTC/USD' }),
      exchange('bitstamp', now, { state: 'maintenance', level: 'notice', why: 'maintenance', maintenance: [{ from: iso(now - HOUR), until: soon(1800), active: true, announced: true, note: 'Spot upgrade' }] }),
      exchange('kucoin', now, { state: 'limited', level: 'notice', why: 'one endpoint is limited', gates: [{ scope: 'endpoint', name: 'books', kind: 'rate_limited', until: soon(9) }], streams: null, samples: { from: iso(now), step_ms: 5000, attempts: [], failures: [], refused: [], retries: [], p50_ms: [], p99_ms: [] } }),
    ],
    clients: [
      { client: 'desk-a', requests: 5940, refused: 5, upstream_units: 1200, in_flight: 3, streams: 2 },
      { client: 'desk-b', requests: 60, refused: 0, upstream_units: 12, in_flight: 0, streams: 0 },
      { client: 'keyless', requests: 9, refused: 0, upstream_units: 2, in_flight: 1, streams: 0 },
    ],
    books: [
      book('okx', 'BTC/USDT', now, { status: 'stale', source: 'memory', reason: 'circuit_open', age_ms: 8123, streamed: false, epoch: undefined, sequence: null }),
      book('binance', 'BTC/USDT', now), book('binance', 'ETH/USDT', now, { age_ms: 640, source: 'rest' }),
      book('coinbase', 'BTC/USD', now, { status: 'syncing', age_ms: null, bid: null, ask: null, spread: null }), book('gemini', 'BTC/USD', now, { status: 'withheld' }),
    ],
  };
}

/** night is a day of events: an outage with many probes, an isolation, a ban. */
export function night(now = Date.now(), boot = 'b1') {
  const events = [];
  const add = (at, e) => events.push({ id: `${boot}-${events.length + 1}`, at: iso(at), ...e });
  const change = (at, from, to, cause) => add(at, { type: 'circuit', exchange: 'okx', class: 'market_data', from, to, cause, kind: 'timeout', window: { settled: 12, failures: 6, slow: 0, consecutive: 5 }, until: to === 'open' ? iso(at + 5000) : undefined });
  let t = now - 9 * HOUR;
  change(t, 'closed', 'open', 'consecutive');
  for (let i = 0; i < 37; i++) {
    change(t += 20 * SECOND, 'open', 'half_open', 'probe_started');
    if (i < 36) change(t += SECOND, 'half_open', 'open', 'probe_failed');
  }
  change(t += SECOND, 'half_open', 'closed', 'probe_succeeded');
  add(now - 7 * HOUR, { type: 'action', exchange: 'kraken', verb: 'isolate', actor: 'night', reason: 'wrong prices', until: iso(now - 6 * HOUR) });
  add(now - 6 * HOUR, { type: 'override', exchange: 'kraken', override: 'isolate', actor: 'night', reason: 'wrong prices', since: iso(now - 7 * HOUR), until: iso(now - 6 * HOUR) });
  add(now - 2 * HOUR, { type: 'gate', exchange: 'bybit', kind: 'banned', scope: { kind: 'ip' }, until: iso(now - HOUR) });
  add(now - HOUR, { type: 'maintenance', exchange: 'bitstamp', announced: true, since: iso(now - HOUR), until: iso(now + HOUR / 2), note: 'Spot upgrade' });
  change(now - 134 * SECOND, 'closed', 'open', 'consecutive');
  return events;
}

/**
 * fixture serves the page and a stream. What it shows is `view.overview(now)` and `view.events`, and can be changed at any time.
 */
export async function fixture(view) {
  const watchers = new Set(), posts = [];
  const frame = (kind, data, id) => `${id ? `id: ${id}\n` : ''}event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
  const server = createServer(async (req, res) => {
    const { pathname } = new URL(req.url, 'http://localhost');
    res.setHeader('Content-Security-Policy', policy);
    res.setHeader('Cache-Control', 'no-store');
    if (pathname === '/') {
      const html = await readFile(join(assets, 'page.html'), 'utf8');
      res.setHeader('Content-Type', 'text/html; charset=utf-8');
      res.end(html.replaceAll('{{.Root}}', '/ui/assets/').replaceAll('{{.Runbooks}}', '/ui/runbooks/').replaceAll('{{.PublicURL}}', 'http://127.0.0.1:8080'));
    } else if (pathname.startsWith('/ui/assets/')) {
      const file = normalize(join(assets, pathname.slice('/ui/assets/'.length)));
      if (!file.startsWith(assets)) return res.writeHead(404).end();
      res.setHeader('Content-Type', types[extname(file)] ?? 'text/plain');
      res.end(await readFile(file).catch(() => res.writeHead(404) && ''));
    } else if (view.refused && pathname.startsWith('/v1/circuits')) {
      res.writeHead(view.refused, { 'Content-Type': 'application/problem+json' }).end('{"code":"unauthenticated"}');
    } else if (pathname === '/v1/circuits/events') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write(`retry: 1000\n\n${frame('snapshot', { ...view.overview(Date.now()), events: view.events }, view.events.at(-1)?.id)}`);
      watchers.add(res);
      req.on('close', () => watchers.delete(res));
    } else if (pathname === '/admin/v1/me') {
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify(view.me));
    } else if (pathname.startsWith('/admin/v1/') && req.method === 'POST') {
      let body = '';
      for await (const part of req) body += part;
      posts.push({ path: pathname, body: JSON.parse(body) });
      const answer = view.answer?.(pathname, JSON.parse(body)) ?? { status: 200, body: {} };
      res.writeHead(answer.status, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify(answer.body));
    } else {
      res.writeHead(404).end();
    }
  });
  const send = (text) => watchers.forEach((w) => w.write(text));
  const timer = setInterval(() => view.silent || send(frame('state', view.overview(Date.now()))), SECOND);
  const listen = (port) => new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  await listen(0);
  const { port } = server.address();
  return {
    url: `http://127.0.0.1:${port}`,
    view, watchers, posts,
    /** pause is a gateway that was killed: nobody listens. */
    pause() {
      server.close();
      server.closeAllConnections();
    },
    resume: () => listen(port),
    tell(e) {
      view.events.push(e);
      send(frame('event', e, e.id) + frame('state', view.overview(Date.now())));
    },
    close() {
      clearInterval(timer);
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
