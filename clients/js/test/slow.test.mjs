// Loops that are slower than the book, against the gateway on simulated exchanges, which change it each 100 ms, and programs that end
// while a watch is open. The last test ends the gateway.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Gateway, compareNumbers } from '../exchange-gateway.js';
import { canned, demo, until } from './stage.mjs';

const PAUSE = 400; // ms, in which there are four versions; a loop that reads one a turn is 6 s behind after 20
const SLACK = 1500; // ms for a loaded machine
const CLIENT = new URL('../exchange-gateway.js', import.meta.url).href;
let stage, gw;
before(async () => {
  stage = await demo({ own: true });
  gw = new Gateway(stage.public);
});
after(() => stage?.close());

const trueAge = (b) => Date.now() - Date.parse(b.freshness.confirmed_at);
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const same = (side, want) => side.length === want.length && side.every((l, j) => [0, 1].every((k) => compareNumbers(l[k], want[j][k]) === 0));

/** A loop over live books that does something slow in each turn: they are young, versions are missed, and each is the exchange's. */
async function slowly(exchange, turns, slow) {
  const ages = [], seen = [];
  let missed = 0, before;
  for await (const b of gw.watchOrderBook(exchange, 'BTC/USDT')) {
    if (b.stale && !seen.length) continue;
    assert.equal(b.stale, false);
    ages.push(trueAge(b));
    assert.ok(b.freshness.ageMs > trueAge(b) - 500, `${b.freshness.ageMs} of ${trueAge(b)}`); // 250 may be the network's
    if (before?.epoch === b.epoch) assert.equal(b.seq - before.seq, b.missed + 1);
    missed += b.missed;
    before = b;
    if (seen.push(b) === turns) break;
    await slow();
  }
  let differences = 0;
  for (const b of seen) {
    const [bids, asks] = await stage.truth(exchange, b);
    if (!same(b.bids, bids) || !same(b.asks, asks)) differences++;
  }
  const oldest = Math.max(...ages);
  assert.ok(oldest < SLACK, `${oldest} ms old`);
  assert.ok(missed >= turns, `${missed} missed`);
  assert.equal(differences, 0);
}

/** What a program prints. It has to end by itself. */
async function run(t, program) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `import { Gateway } from '${CLIENT}';\n${program}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (part) => { said += part; });
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(20_000) });
  return [code, said];
}

test('at once', { concurrency: true }, async (t) => {
  const all = [];
  for (const exchange of ['okx', 'binance']) {
    all.push(t.test(`a loop that waits gets the newest book each time: ${exchange}`, () => slowly(exchange, 20, () => wait(PAUSE))));
  }
  all.push(t.test('a program ends with a watch left open, and not while it waits for one', async (u) => {
    const watch = `new Gateway('${stage.public}').watchOrderBook('okx', 'BTC/USDT', { depth: 5 })`;
    assert.deepEqual(await run(u, `
      const open = ${watch}, all = [];
      for (let live = 0; live < 5;) if (!(await open.next()).value.stale) live++;
      for await (const b of ${watch}) if (all.push(b) === 8) break;
      console.log(all.length);
    `), [0, '8\n']);
  }));
  all.push(t.test('a program ends with a watch left open that is not answered, or waits to connect again', async (u) => {
    const mute = await canned([60_000]), gone = await canned();
    u.after(mute.close);
    await gone.close();
    assert.deepEqual(await run(u, `
      const open = [['${mute.url}', { everyMs: 300 }], ['${gone.url}']].map(([url, options]) => new Gateway(url).watchOrderBook('okx', 'BTC/USDT', options));
      const reasons = [];
      for (const books of open) reasons.push((await books.next()).value.freshness.reason);
      console.log(reasons.join());
    `), [0, 'connecting,disconnected\n']);
  }));
  await Promise.all(all);
});

test('a loop that computes gets the newest book each time', async () => {
  await slowly('okx', 10, async () => block(PAUSE)); // nothing is read meanwhile
});

test('a slow loop is told at once that the gateway was killed', async () => {
  const books = gw.watchOrderBook('okx', 'BTC/USDT');
  const next = async () => (await books.next()).value;
  await until('the book is live', async () => !(await next()).stale);
  for (let turns = 0; turns < 5; turns++) {
    await wait(PAUSE);
    assert.equal((await next()).stale, false);
  }
  await wait(PAUSE);
  await stage.crash();
  for (let turns = 0; turns < 3; turns++) {
    await wait(PAUSE);
    const b = await next();
    const age = trueAge(b);
    assert.deepEqual([b.stale, b.freshness.reason], [true, 'disconnected']);
    assert.ok(b.bids.length && Math.abs(b.freshness.ageMs - age) < 500, `${b.freshness.ageMs} of ${age}`);
  }
  await books.return();
});
