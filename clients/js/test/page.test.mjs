// The example page in a real Chromium, from an origin of its own that the gateway invites, and as it is told that a book is old.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { Gateway } from '../exchange-gateway.js';
import { demo, until } from './stage.mjs';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8' };
let stage, files, origin, browser;

before(async () => {
  files = createServer(async (req, res) => {
    const path = new URL(req.url, 'http://x').pathname.replace(/\/$/, '/index.html');
    const body = /^\/(?:clients|examples)\/js\/[a-z-]+\.(?:html|js)$/.test(path) ? await readFile(ROOT + path).catch(() => null) : null;
    res.writeHead(body ? 200 : 404, { 'content-type': TYPES[path.split('.').pop()] ?? 'text/plain' }).end(body);
  }).listen(0, '127.0.0.1');
  await once(files, 'listening');
  origin = `http://127.0.0.1:${files.address().port}`;
  stage = await demo({ own: true, settings: [`cors_origins=${origin}`] });
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
});
after(async () => {
  await browser?.close();
  await stage?.close();
  files?.close();
  files?.closeAllConnections();
});

async function open(t, query) {
  const page = await browser.newPage();
  t.after(() => page.close());
  const faults = [];
  page.on('pageerror', (err) => faults.push(err.message));
  await page.goto(`${origin}/examples/js/?${new URLSearchParams(query)}`);
  return { page, faults, text: (id) => page.locator(`#${id}`).textContent() };
}

test('a live book, then an old one with its age, then a live one again', async (t) => {
  const { page, faults, text } = await open(t, { gateway: stage.public, exchange: 'okx', symbol: 'BTC/USDT', depth: 5 });
  await until('the book is live', async () => await text('status') === 'Live.');
  assert.equal(await text('title'), 'BTC/USDT at okx');
  const rows = await page.locator('#book tbody tr').evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
  assert.equal(rows.length, 5);
  for (const cell of rows.flat()) assert.match(cell, /^[0-9]+(\.[0-9]+)?$/);
  assert.match(await text('mid'), /^[0-9]+\.[0-9]+$/);

  const gw = new Gateway(stage.public, { key: stage.key });
  await stage.fault('okx', { kind: 'maintenance', for: '60s' });
  await until('the page says that it is old', async () => /^Stale \(\w+\): do not trade on it\.$/.test(await text('status')));
  assert.equal(await page.locator('#book[data-old] tbody tr').count(), 5); // it is still shown
  const age = async () => Number(/^Confirmed ([0-9.]+) s ago\.$/.exec(await text('age'))?.[1]);
  const first = await age();
  await until('its age grows', async () => await age() > first + 1);
  await stage.heal(gw, 'okx');
  await until('the book is live again', async () => await text('status') === 'Live.');
  assert.deepEqual(faults, []);
});

test('what cannot be shown is said', async (t) => {
  const { text, faults } = await open(t, { gateway: stage.public, exchange: 'okx', symbol: 'NO/SUCH' });
  await until('the page says so', async () => (await text('status')).includes('[symbol_unknown]'));
  assert.deepEqual(faults, []);
});

test('without an invitation the browser keeps the page out, and the page says that it gets nothing', async (t) => {
  const { text } = await open(t, { gateway: stage.admin, exchange: 'okx' }); // nobody is invited there
  await until('the page says so', async () => /^Stale \(disconnected\)/.test(await text('status')));
});

test('a loop in a page that computes gets the newest book each time', async (t) => {
  const { page } = await open(t, { gateway: stage.public, exchange: 'okx', symbol: 'BTC/USDT' });
  const turns = await page.evaluate(async (url) => {
    const { Gateway } = await import('/clients/js/exchange-gateway.js');
    const all = [];
    for await (const b of new Gateway(url).watchOrderBook('okx', 'BTC/USDT', { depth: 5 })) {
      if (b.stale) continue;
      all.push([Date.now() - Date.parse(b.freshness.confirmed_at), b.freshness.ageMs, b.missed]);
      if (all.length === 10) return all;
      for (const end = Date.now() + 400; Date.now() < end;); // nothing is read meanwhile
    }
  }, stage.public);
  // A loop that reads one version a turn would be 2 s behind in the end.
  for (const [age, told] of turns) assert.ok(age < 1500 && told > age - 500, `${turns}`);
  assert.ok(turns.reduce((sum, [, , missed]) => sum + missed, 0) >= 3, `${turns}`);
});
