// The stage: a gateway in front of simulated exchanges (`gateway demo`), and examples that are run against it as a newcomer would,
// with nothing but what they say they need. Each is a process; everything ends with the test.
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as wait } from 'node:timers/promises';

/** root is the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url));
export const example = (...path) => join(root, 'examples', ...path);

const PATIENCE = 60_000; // ms until something comes to be, on a loaded machine
const KEPT = 1 << 20; // characters that are kept of what a process writes

/** until asks until it is so, and returns what was found. */
export async function until(what, ok, patience = PATIENCE) {
  for (const end = Date.now() + patience; Date.now() < end; await wait(50)) {
    const got = await ok();
    if (got) return got;
  }
  throw new Error(`${what}: not within ${patience} ms`);
}

/** start runs a program. `text` is what it has written so far, both streams; `ended` is its exit code, later. */
export function start(program, args = [], { env = {}, cwd = root } = {}) {
  const child = spawn(program, args, { cwd, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const it = { child, text: '', out: '' };
  child.stdout.on('data', (part) => { it.out = (it.out + part).slice(-KEPT); it.text = (it.text + part).slice(-KEPT); });
  child.stderr.on('data', (part) => { it.text = (it.text + part).slice(-KEPT); });
  it.ended = new Promise((resolve) => {
    child.on('error', (err) => { it.text += err.message; resolve(-1); });
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  it.stop = async (signal = 'SIGTERM') => {
    child.kill(signal);
    return it.ended;
  };
  return it;
}

/** run runs a program to its end, which has to be good, and returns what it wrote to standard output. */
export async function run(program, args, options) {
  const it = start(program, args, options);
  const code = await it.ended;
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${it.text}`);
  return it.out;
}

const endings = [];
/** later notes what has to be done at the end of a file of tests, by tidy. */
export const later = (end) => endings.push(end);
export async function tidy() {
  while (endings.length) await endings.pop()();
}

/** demo starts `gateway demo` on free ports, without outages of its own, until tidy. settings are `path=value` of the gateway's. */
export async function demo({ settings = [], log = 'error' } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'exchange-gateway-examples-'));
  const free = '127.0.0.1:0';
  const gateway = start(join(root, 'bin', 'gateway'), [
    'demo', '--listen', free, '--admin-listen', free, '--control', free, '--every', '24h', '--ready-file', join(dir, 'ready.json'),
    '--log-level', log, ...settings.flatMap((s) => ['--set', s]),
  ]);
  later(async () => {
    await gateway.stop();
    await rm(dir, { recursive: true, force: true });
  });
  let over;
  gateway.ended.then((code) => { over = code; });
  const at = await until('the demo listens', async () => {
    if (over !== undefined) throw new Error(`the demo ended with ${over}:\n${gateway.text}`);
    return readFile(join(dir, 'ready.json'), 'utf8').then(JSON.parse, () => undefined);
  });
  const control = async (method, path, body) => {
    const res = await fetch(at.control + path, { method, body: body && JSON.stringify(body) });
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
    return res.json();
  };
  return {
    ...at, dir, control, log: () => gateway.text,
    breaks: (venue, fault) => control('POST', `/v1/faults/${venue}`, fault),
    heals: (venue) => control('DELETE', `/v1/faults/${venue}`),
    /** live waits until a book of an exchange is live. */
    live: (exchange, symbol, headers = {}) => until(`${exchange} ${symbol} is live`, async () => {
      const res = await fetch(`${at.public}/v1/exchanges/${exchange}/orderbook?symbol=${symbol}&depth=1`, { headers });
      return res.ok && (await res.json()).stale === false;
    }),
    /** stale asks until a book is served stale: the gateway then knows that the exchange is broken. */
    stale: (exchange, symbol, headers = {}) => until(`${exchange} ${symbol} is stale`, async () => {
      const res = await fetch(`${at.public}/v1/exchanges/${exchange}/orderbook?symbol=${symbol}&depth=1`, { headers });
      return res.ok && (await res.json()).stale === true;
    }),
  };
}
