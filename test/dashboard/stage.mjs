// The stage: simulated exchanges that misbehave on command, a gateway in front of them, Redis where it is asked for, and a bot,
// since a circuit learns from the calls of others only. Each is a process of its own, on ports that nobody else has.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as wait } from 'node:timers/promises';

const bin = (name) => fileURLToPath(new URL(`../../bin/${name}`, import.meta.url));
const PATIENCE = 30_000; // ms until a process listens, on a loaded machine
const EVERY = 200; // ms between two rounds of the bot: 5 failures in a row take the 2 s that they must span

/** books are what the bot asks for. */
export const books = { binance: 'BTC/USDT', okx: 'BTC/USDT', coinbase: 'BTC/USD' };

const freePort = () => new Promise((resolve, reject) => {
  const s = createServer().listen(0, '127.0.0.1', () => {
    const { port } = s.address();
    s.close((err) => (err ? reject(err) : resolve(port)));
  });
});

async function until(what, ok) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await wait(50)) {
    const got = await ok().catch(() => undefined);
    if (got) return got;
  }
  throw new Error(`${what}: not within ${PATIENCE} ms`);
}

/** a process that says at its end what it wrote, if that was not expected. */
function start(name, args, env = {}) {
  const child = spawn(name, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  const keep = (part) => { log = (log + part).slice(-100_000); };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  child.on('error', keep);
  return {
    child,
    log: () => log,
    async kill(signal = 'SIGKILL') {
      child.kill(signal);
      await ended;
    },
  };
}

/**
 * stage raises all of it. settings are `path=value` of the gateway's. With redis nothing else survives a restart: each start has
 * a state directory of its own.
 */
export async function stage({ redis = false, settings = [] } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'exchange-gateway-dashboard-'));
  const [publicPort, adminPort, redisPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const running = new Set();
  const run = (...args) => {
    const p = start(...args);
    running.add(p);
    return p;
  };
  let gateway, talking = true, bot;
  const state = () => join(dir, redis ? `state-${starts++}` : 'state');
  let starts = 0;

  const sim = run(bin('exchangesim'), ['--ready-file', join(dir, 'ready.json'), ...['binance', 'okx', 'coinbase', 'control'].flatMap((n) => [`--${n}`, '127.0.0.1:0'])]);
  const urls = await until('the simulated exchanges listen', async () => JSON.parse(await readFile(join(dir, 'ready.json'), 'utf8')));
  if (redis) {
    run('redis-server', ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir]);
    settings = [...settings, `redis.addrs=127.0.0.1:${redisPort}`];
  }

  const env = { HOME: dir };
  for (const id of Object.keys(books)) Object.assign(env, { [`GATEWAY_EXCHANGES_${id.toUpperCase()}_HOSTS`]: urls[id], [`GATEWAY_EXCHANGES_${id.toUpperCase()}_ACCOUNT_HOSTS`]: urls[id] });
  const it = {
    admin: `http://127.0.0.1:${adminPort}`,
    public: `http://127.0.0.1:${publicPort}`,
    async serve() {
      gateway = run(bin('gateway'), ['serve', `--listen=127.0.0.1:${publicPort}`, `--admin-listen=127.0.0.1:${adminPort}`, `--state-dir=${state()}`, ...settings.flatMap((s) => ['--set', s])], env);
      await until('the gateway listens', async () => {
        if (gateway.child.exitCode !== null) throw new Error(gateway.log());
        return (await fetch(`${it.public}/livez`)).ok;
      });
    },
    /** key makes a key of a scope and returns it. */
    async key(scope, note) {
      const made = run(bin('gateway'), ['key', 'new', `--state-dir=${join(dir, 'state')}`, `--scope=${scope}`, `--note=${note}`], env);
      return until('a key', async () => /gw_\w+/.exec(made.log())?.[0]);
    },
    /** kill is kill -9: nobody says goodbye. */
    async kill() {
      await gateway.kill();
      running.delete(gateway);
    },
    inject: (venue, fault) => control('POST', `/v1/faults/${venue}`, fault),
    heal: (venue) => control('DELETE', `/v1/faults/${venue}`),
    /** counts is how many requests each exchange got. */
    counts: async () => Object.fromEntries(Object.entries(await control('GET', '/v1/stats')).map(([id, s]) => [id, s.requests])),
    /** watchers is how many connections follow the events. */
    watchers: async () => Number(/^gateway_ops_watchers (\d+)/m.exec(await (await fetch(`${it.admin}/metrics`)).text())[1]),
    book: (id) => fetch(`${it.public}/v1/exchanges/${id}/orderbook?symbol=${books[id]}&depth=5&max_age_ms=600000`, { signal: AbortSignal.timeout(10_000) }),
    circuits: async () => (await fetch(`${it.admin}/v1/circuits`)).json(),
    log: () => gateway.log(),
    async close() {
      talking = false;
      await bot;
      await Promise.all([...running].map((p) => p.kill()));
      await rm(dir, { recursive: true, force: true });
    },
  };
  async function control(method, path, body) {
    const res = await fetch(urls.control + path, { method, body: body && JSON.stringify(body) });
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
    return res.json();
  }
  try {
    await it.serve();
  } catch (err) {
    await it.close();
    throw err;
  }
  bot = (async () => {
    while (talking) {
      await Promise.all([...Object.keys(books).map((id) => it.book(id).catch(() => undefined)), wait(EVERY)]); // a gateway that is down is part of the play
    }
  })();
  return it;
}
