// The dashboard of a gateway that is real, in front of exchanges that are simulated.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { inBothSchemes, launch, open, overflow } from './browser.mjs';
import { books, stage } from './stage.mjs';

const SLOW = 45_000; // ms: what a loaded machine may take
const SOON = 1_000; // ms from a trip to the moment at which the page shows it
const venues = Object.keys(books);

let browser, gateway;
before(async () => { [browser, gateway] = await Promise.all([launch(), stage({ redis: true })]); });
after(async () => { await Promise.all([browser?.close(), gateway?.close()]); });

const state = (page, id, want) => page.waitForSelector(`#x-${id}.s-${want}`, { timeout: SLOW });
// well is no circuit open and nothing in force. What clients got in the two minutes before may still make it amber.
const well = (page, id) => page.waitForSelector(`#x-${id}:is(.s-closed, .s-failing)`, { timeout: SLOW });
const line = (page, want) => page.waitForFunction((w) => document.documentElement.dataset.line === w, want, { timeout: SLOW });
const text = async (page, selector) => (await page.textContent(selector)).replaceAll('\u00a0', ' ');
const press = async (page, ...all) => { for (const key of all) await page.keyboard.press(key); };
const act = async (verb, body) => {
  const res = await fetch(`${gateway.admin}/admin/v1/${verb}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ actor: 'kim', ...body }) });
  assert.equal(res.status, 200, await res.clone().text());
  return res.json();
};

/** history is every event that the gateway knows, from the first frame of a stream of its own. */
async function history() {
  const stop = new AbortController();
  const res = await fetch(`${gateway.admin}/v1/circuits/events`, { signal: stop.signal });
  let read = '';
  for await (const part of res.body.pipeThrough(new TextDecoderStream())) {
    read += part;
    const frame = /event: snapshot\ndata: (.*)\n\n/.exec(read);
    if (frame) {
      stop.abort();
      return JSON.parse(frame[1]).events;
    }
  }
  throw new Error(`no snapshot in ${read.slice(0, 200)}`);
}

/** shown runs a test on a page of its own that is live. */
const shown = (name, body, options) => it(name, { timeout: 180_000 }, async (t) => {
  const p = await open(browser, gateway.admin, options);
  try {
    await line(p.page, 'live');
    await body(p, t);
    p.clean();
  } finally {
    await p.context.close();
  }
});

describe('an outage', () => {
  shown('shows within a second of the trip, counts down and recovers', async ({ page }, t) => {
    for (const id of venues) await state(page, id, 'closed');
    await page.evaluate((ids) => {
      window.opened = {};
      for (const id of ids) {
        const card = document.getElementById(`x-${id}`);
        new MutationObserver(() => { if (card.classList.contains('s-open')) window.opened[id] ??= Date.now(); }).observe(card, { attributes: true, attributeFilter: ['class'] });
      }
    }, venues);
    for (const id of venues) await gateway.inject(id, { kind: 'unavailable', for: '10m' });
    for (const id of venues) await page.waitForFunction((v) => window.opened[v], id, { timeout: SLOW });
    await page.waitForFunction(() => document.documentElement.dataset.level === 'down', null, { timeout: SLOW });
    assert.match(await page.getAttribute('#favicon', 'href'), /level-down\.svg$/);
    await page.waitForFunction(() => document.title === document.querySelector('h1').textContent && document.title.length > 20, null, { timeout: SLOW });

    const opened = await page.evaluate(() => window.opened);
    const trips = (await history()).filter((e) => e.type === 'circuit' && e.class === 'market_data' && e.to === 'open');
    const took = venues.map((id) => opened[id] - Date.parse(trips.find((e) => e.exchange === id).at));
    t.diagnostic(`from the trip to the page: ${took.join(', ')} ms`);
    // One machine shows the page, is the gateway and is every exchange; a moment in which it does none of that is not the page's.
    assert.ok(Math.min(...took) <= SOON, `shown ${took} ms after the trips`);
    assert.ok(Math.max(...took) <= 10 * SOON, `shown ${took} ms after the trips`);

    const left = () => page.evaluate(() => Number(/in (\d+)/.exec(document.querySelector('#x-okx .countdown')?.textContent ?? '')?.[1] ?? NaN));
    const seen = [];
    for (const end = Date.now() + SLOW; Date.now() < end && seen.filter((n, i) => i > 0 && n < seen[i - 1]).length < 2; await wait(200)) {
      const n = await left();
      if (!Number.isNaN(n) && n !== seen.at(-1)) seen.push(n);
    }
    assert.ok(seen.filter((n, i) => i > 0 && n < seen[i - 1]).length >= 2, `it counts down: ${seen}`);

    for (const id of venues) await gateway.heal(id);
    for (const id of venues) await well(page, id);
    await page.waitForFunction(() => /answers/.test(document.querySelector('#events-list .what').textContent), null, { timeout: SLOW });
  });
});

describe('by keyboard alone', () => {
  shown('isolate and release', async ({ page }) => {
    const place = String((await gateway.circuits()).exchanges.findIndex((e) => e.id === 'okx') + 1);
    await page.waitForSelector('#who:has-text("acting without a key")', { timeout: SLOW });
    await press(page, place, 'i');
    await page.waitForSelector('#order[open]');
    await page.keyboard.type('prices are wrong');
    await press(page, 'Tab');
    await page.keyboard.type('kim');
    await press(page, 'Enter');
    await state(page, 'okx', 'isolated');
    await page.waitForSelector('#events-list:has-text("local:kim isolated okx")', { timeout: SLOW });
    assert.match(await text(page, '#x-okx .force'), /isolated by local:kim until \d\d:\d\d.*prices are wrong.*computed beside it: every circuit closed/);

    // A shorter one in its place has to be meant, and says what it replaced.
    await press(page, 'i');
    await page.waitForSelector('#order .inforce:has-text("isolated by local:kim")', { timeout: SLOW });
    await page.focus('#order input[name="for"][value="15"]');
    await press(page, 'Space');
    await page.focus('#order-reason');
    await page.keyboard.type('shorter');
    await press(page, 'Enter');
    await page.waitForSelector('#order-problem:has-text("earlier than local:kim")', { timeout: SLOW });
    assert.match(await text(page, '#order-problem'), /^It would end 4[0-4] min earlier/);
    await press(page, 'Space', 'Enter'); // the focus is on the tick
    await page.waitForSelector('#order[open]', { state: 'detached', timeout: SLOW });
    assert.match(await text(page, '#toast'), /It replaces local:kim's until \d\d:\d\d UTC: prices are wrong/);
    const { okx: before } = await gateway.counts();
    await wait(1500); // several rounds of the bot
    assert.equal((await gateway.counts()).okx, before, 'no request');

    await press(page, 'r');
    await page.waitForSelector('#order[open]');
    await page.keyboard.type('prices are right');
    await press(page, 'Enter'); // the name is still known
    await well(page, 'okx');
    await page.waitForSelector('#events-list:has-text("local:kim released okx")', { timeout: SLOW });
    for (const end = Date.now() + SLOW; (await gateway.counts()).okx === before; await wait(100)) assert.ok(Date.now() < end, 'requests go out again');
  });

  shown('withhold and purge', async ({ page }) => {
    await page.click('[data-verb="withhold"][data-exchange="binance"]');
    await page.fill('#order-symbol', 'btc/usdt');
    await page.fill('#order-reason', 'levels are wrong');
    await page.fill('#order-actor', 'kim');
    await page.keyboard.press('Enter');
    await state(page, 'binance', 'withheld');
    assert.equal((await (await gateway.book('binance')).json()).code, 'withheld');
    await act('release', { exchange: 'binance', reason: 'levels are right' });
    await well(page, 'binance');
    await page.click('[data-verb="purge"][data-exchange="binance"]');
    await page.fill('#order-symbol', 'BTC/USDT');
    await page.fill('#order-reason', 'levels are wrong');
    await page.fill('#order-actor', 'kim');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#toast:has-text("Dropped from")', { timeout: SLOW });
    await page.click('[data-verb="withhold"][data-exchange="binance"]');
    await page.fill('#order-symbol', 'NOT A PAIR');
    await page.fill('#order-reason', 'levels are wrong');
    await page.fill('#order-actor', 'kim');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById('order-problem').textContent !== '', null, { timeout: SLOW });
    assert.equal(await page.evaluate(() => document.activeElement.id), 'order-symbol', 'the field at fault');
  });
});

describe('kill -9 and a restart, with Redis', () => {
  shown('frozen, then live without a reload, and no event is missed', async ({ page }) => {
    await act('isolate', { exchange: 'coinbase', reason: 'before the end', for: '30m' });
    await state(page, 'coinbase', 'isolated');
    await page.evaluate(() => { window.same = true; });
    await gateway.kill();
    await line(page, 'frozen');
    assert.match(await text(page, '#frozen'), /^Data frozen at \d\d:\d\d:\d\d, for \d+ s/);
    assert.match(await page.title(), /^FROZEN/);

    await gateway.serve();
    await act('isolate', { exchange: 'okx', reason: 'while the page was away', for: '30m' });
    await line(page, 'live');
    await state(page, 'okx', 'isolated');
    await state(page, 'coinbase', 'isolated'); // what was in force still is
    assert.equal(await page.evaluate(() => window.same), true, 'the page was not loaded again');
    await page.waitForSelector('#events-list:has-text("while the page was away")', { timeout: SLOW });
    const known = (await history()).map((e) => e.id).reverse();
    assert.ok(known.some((id) => id.split('-')[0] !== known[0].split('-')[0]), 'events of both lives');
    await page.waitForFunction((want) => [...document.querySelectorAll('.events li')].map((li) => li.id.slice(2)).join() === want, known.slice(0, 100).join(), { timeout: SLOW });
    for (const exchange of ['okx', 'coinbase']) await act('release', { exchange, reason: 'all is well' });
    for (const id of venues) await well(page, id);
  });
});

describe('many tabs', () => {
  shown('ten share one connection, and all of them are live', async ({ context, page }) => {
    const tabs = [page, ...await Promise.all(Array.from({ length: 9 }, async () => {
      const tab = await context.newPage();
      await tab.goto(gateway.admin, { waitUntil: 'commit' });
      return tab;
    }))];
    for (const tab of tabs) await line(tab, 'live');
    // The pages of earlier tests may be going still.
    const one = async () => { for (const end = Date.now() + SLOW; await gateway.watchers() !== 1; await wait(100)) assert.ok(Date.now() < end, `${await gateway.watchers()} connections`); };
    await one();
    await page.close(); // it was there first
    const { event } = await act('probe', { exchange: 'okx', reason: 'for all tabs' });
    for (const tab of tabs.slice(1)) await tab.waitForSelector(`#e-${event}`, { timeout: SLOW });
    await one();
  });
});

describe('for everybody', () => {
  shown('axe finds nothing in both schemes, 360 pixels are enough', async ({ page }) => {
    await page.waitForSelector('#books table', { timeout: SLOW });
    await inBothSchemes(page, 'the page');
    await page.setViewportSize({ width: 360, height: 740 });
    assert.equal(await overflow(page), 0, 'the page');
    await page.goto(`${gateway.admin}/ui/plain`);
    await inBothSchemes(page, 'the plain page');
    assert.equal(await overflow(page), 0, 'the plain page');
    await page.click('a[href="/ui/runbooks/"]');
    await page.waitForSelector('a[href$=".md"]', { timeout: SLOW });
    await inBothSchemes(page, 'the list of runbooks');
    assert.equal(await overflow(page), 0, 'the list of runbooks');
  });

  it('without a script there is the plain page', async () => {
    const p = await open(browser, gateway.admin, { javaScriptEnabled: false });
    await p.page.click('noscript a');
    await p.page.waitForSelector('table');
    assert.match(await p.page.textContent('h1'), /./);
    // The clients are there if one did something in the last minute.
    assert.equal(await p.page.locator('section h2:not(#clients)').count(), venues.length + 1);
    p.clean();
    await p.context.close();
  });

  shown('the drawer tells what is in force, and its line for the shell works', async ({ page }) => {
    await page.click('[data-key="book:okx:BTC/USDT"]');
    const curl = await page.textContent('#drawer .shell code');
    const [, url] = /^curl -s '(.+)'$/.exec(curl);
    const book = await (await fetch(url)).json();
    assert.equal(book.symbol, 'BTC/USDT');
    await page.click('#drawer [data-verb="withhold"]'); // from here it is about this book
    assert.equal(await page.inputValue('#order-symbol'), 'BTC/USDT');
    assert.match(await text(page, '.consequence'), /Reads of BTC\/USDT at okx answer 503 withheld/);
    await page.keyboard.press('Escape');
    await page.waitForSelector('#order[open]', { state: 'detached' });
    await page.keyboard.press('Escape');
    await page.waitForSelector('#drawer[open]', { state: 'detached' });
    await page.click('[data-key="circuit:okx/market_data"]');
    assert.match(await text(page, '#drawer'), /Opens after5 failures in a row over at least 2\.0 s/);
    const runbook = await page.getAttribute('#drawer a[href$="GatewayCircuitOpen.md"]', 'href');
    const answer = await fetch(gateway.admin + runbook);
    assert.equal(await answer.text(), readFileSync(new URL('../../docs/runbooks/GatewayCircuitOpen.md', import.meta.url), 'utf8'), 'the gateway has the runbook');
  });
});
