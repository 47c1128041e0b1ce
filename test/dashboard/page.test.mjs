// The page in Chromium, on a gateway that shows whatever it is told.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { accessible, inBothSchemes, launch, open, overflow } from './browser.mjs';
import { everything, exchange, fixture, night } from './fixture.mjs';

const SLOW = 20_000; // ms: what a loaded machine may take
let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** shown runs a test on a page of its own. */
const shown = (name, view, body, options) => it(name, { timeout: 120_000 }, async () => {
  const gateway = await fixture({ overview: everything, events: [], me: { actor: null, may_act: true, needs_name: true, why: '' }, ...view() });
  const p = await open(browser, gateway.url, options);
  try {
    await p.page.waitForSelector('#x-okx, [data-line="denied"]', { timeout: SLOW });
    await body(p, gateway);
    p.clean();
  } finally {
    await p.context.close();
    await gateway.close();
  }
});
const text = async (page, selector) => (await page.textContent(selector)).replaceAll('\u00a0', ' ');

describe('every state at once', () => {
  shown('axe finds nothing in both schemes, dialogs and drawers included', () => ({ events: night().slice(-12) }), async ({ page }) => {
    await page.waitForSelector('#who:has-text("acting without a key")', { timeout: SLOW });
    await page.click('#lanes-details summary');
    await page.waitForSelector('#lanes-details table');
    await inBothSchemes(page, 'the page');
    for (const [what, press, dialog] of [
      ['isolate', '[data-verb="isolate"][data-exchange="okx"]', '#order'], ['purge', '[data-verb="purge"][data-exchange="okx"]', '#order'],
      ['a circuit', '[data-key="circuit:okx/market_data"]', '#drawer'], ['a book', '[data-key="book:binance:BTC/USDT"]', '#drawer'], ['help', '[data-act="help"]', '#help'],
    ]) {
      await page.click(press);
      await page.waitForSelector(`${dialog}[open]`);
      await inBothSchemes(page, what, dialog);
      await page.keyboard.press('Escape');
      await page.waitForSelector(`${dialog}[open]`, { state: 'detached' });
    }
  });

  shown('a state is a word, an icon, a hue and a border of its own', () => ({}), async ({ page }) => {
    const look = await page.$$eval('.card', (cards) => cards.map((c) => ({
      word: c.querySelector('.badge').textContent, icon: c.querySelector('.badge svg').innerHTML, border: getComputedStyle(c).borderLeftStyle,
    })));
    assert.equal(look.length, 8);
    assert.equal(await page.locator('dialog:visible').count(), 0, 'no dialog is open');
    assert.equal(new Set(look.map((l) => l.word)).size, 8, 'words');
    assert.equal(new Set(look.map((l) => l.icon)).size, 8, 'shapes');
    assert.equal(new Set(look.slice(0, 4).map((l) => l.border)).size, 4, 'borders of closed, open, half-open, isolated');
  });

  shown('360 pixels are enough, dialogs and drawers included', () => ({ events: night() }), async ({ page }) => {
    await page.waitForSelector('#lanes .seg');
    assert.equal(await overflow(page), 0, 'the page');
    for (const press of ['[data-verb="isolate"][data-exchange="okx"]', '[data-key="circuit:okx/market_data"]', '[data-key="book:okx:BTC/USDT"]']) {
      await page.click(press);
      const dialog = await page.waitForSelector('dialog[open]');
      const { over, left, right } = await dialog.evaluate((d) => ({ over: d.scrollWidth - d.clientWidth, left: d.getBoundingClientRect().left, right: d.getBoundingClientRect().right }));
      assert.ok(over <= 0 && left >= 0 && right <= 360, `${press}: ${over} too wide, from ${left} to ${right}`);
      await page.keyboard.press('Escape');
    }
  }, { viewport: { width: 360, height: 740 } });

  shown('what somebody else wrote is text', () => ({}), async ({ page, faults }) => {
    assert.match(await text(page, '#x-kraken .force'), /<b>since<\/b>/);
    assert.equal(await page.locator('#x-kraken .force b').count(), 0);
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.injected = true';
      document.body.append(script);
      document.body.insertAdjacentHTML('beforeend', '<p id="styled" style="position:fixed">x</p>');
    });
    assert.equal(await page.evaluate(() => window.injected), undefined, 'an injected script does not run');
    assert.equal(await page.evaluate(() => getComputedStyle(document.getElementById('styled')).position), 'static', 'nor does an injected style');
    assert.equal(faults.splice(0).filter((f) => /Content.Security.Policy/i.test(f)).length, 2, 'both were refused');
  });

  shown('the colours follow the scheme without a reload, charts included', () => ({}), async ({ page }) => {
    const ink = () => page.$eval('#x-okx .spark:nth-child(2) canvas', (c) => {
      const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
      let i = data.length - 4;
      while (i > 0 && data[i + 3] < 255) i -= 4;
      return [...data.slice(i, i + 3)].join();
    });
    await page.waitForTimeout(200); // a chart draws in the next microtask of its frame
    const light = await ink(), ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForFunction((was) => getComputedStyle(document.documentElement).backgroundColor !== was, ground);
    await page.waitForTimeout(200);
    assert.notEqual(await ink(), light);
  }, { colorScheme: 'light' });

  shown('on a wall there is nothing to press', () => ({}), async ({ page }) => {
    await page.goto(`${page.url()}?kiosk=1`);
    await page.waitForSelector('#x-okx');
    assert.equal(await page.locator('button:visible').filter({ hasNotText: /okx|binance|coinbase|kraken|bybit|gemini|bitstamp|kucoin/ }).count(), 0);
  });
});

describe('the connection', () => {
  const line = (page, want) => page.waitForFunction((w) => document.documentElement.dataset.line === w, want, { timeout: SLOW });
  /** watched keeps what the headline says whenever the connection stands differently, and how long the page stood still at most. */
  const watched = (page) => page.evaluate(() => {
    const root = document.documentElement;
    window.said = [];
    window.stall = 0;
    let before = performance.now();
    setInterval(() => {
      const now = performance.now();
      window.stall = Math.max(window.stall, now - before - 50);
      before = now;
    }, 50);
    new MutationObserver(() => window.said.push({ at: Date.now(), line: root.dataset.line, level: root.dataset.level, words: document.querySelector('#headline h1').textContent, title: document.title }))
      .observe(root, { attributes: true, attributeFilter: ['data-line'] });
  });
  const heard = (page, which) => page.evaluate((w) => window.said.find((s) => s.line === w), which);

  shown('that goes quiet is not current after three seconds, frozen within five', () => ({}), async ({ page }, gateway) => {
    await line(page, 'live');
    await watched(page);
    gateway.view.silent = true; // the connection stands, and nothing comes: a cable that was pulled
    const from = Date.now();
    await line(page, 'frozen');
    const late = await heard(page, 'late'), frozen = await heard(page, 'frozen');
    const stall = await page.evaluate(() => window.stall); // a machine that gives the page no time is not the page
    assert.ok(frozen.at - from <= 5000 + stall, `frozen ${frozen.at - from} ms after the frames ended, with a stall of ${stall} ms`);
    assert.ok(late && late.at - from <= 3500 + stall, `not current ${late?.at - from} ms after the frames ended, with a stall of ${stall} ms`);
    assert.match(late.words, /^Not current: 5 of 8 exchanges degraded/);
    assert.match(late.title, /^Not current: /);
    assert.equal(late.level, 'frozen', 'nor does a colour claim anything');
    assert.match(frozen.words, /^Not current: /);
    // A connection that is dead is given up, and a new one brings the page back.
    gateway.view.silent = false;
    await line(page, 'live');
  });

  shown('that was lost comes back without a reload, with what was missed', () => ({}), async ({ page }, gateway) => {
    await line(page, 'live');
    await page.evaluate(() => { window.same = true; });
    const missed = { id: 'b1-900', at: new Date().toISOString(), type: 'action', exchange: 'okx', verb: 'probe', actor: 'night', reason: 'while you were away' };
    await watched(page);
    gateway.pause();
    await line(page, 'frozen');
    const lost = await heard(page, 'reconnecting');
    assert.match(lost?.words, /^Not current: /, 'a connection that is known to be lost claims nothing');
    assert.match(await text(page, '#frozen'), /Data frozen at \d\d:\d\d:\d\d, for \d+ s/);
    assert.match(await page.title(), /^FROZEN at /);
    assert.match(await page.getAttribute('#favicon', 'href'), /level-frozen\.svg$/);
    await accessible(page, 'what a frozen page says', '#frozen');
    const before = await text(page, '#x-okx .countdown');
    const count = await text(page, '#frozen');
    await page.waitForFunction((was) => document.getElementById('frozen').textContent.replaceAll('\u00a0', ' ') !== was, count, { timeout: SLOW });
    assert.equal(await text(page, '#x-okx .countdown'), before, 'nothing counts on while nothing is known');
    gateway.view.events.push(missed);
    gateway.resume();
    await line(page, 'live');
    await page.waitForSelector('#e-b1-900', { timeout: SLOW });
    assert.equal(await page.isHidden('#frozen'), true);
    assert.equal(await page.evaluate(() => window.same), true, 'the page was not loaded again');
    assert.match(await page.getAttribute('#favicon', 'href'), /level-degraded\.svg$/);
    await page.waitForFunction(() => /while you were away/.test(document.getElementById('said').textContent), null, { timeout: SLOW });
  });

  shown('that is refused says so and offers to log in', () => ({ refused: 401, me: { actor: null, may_act: false, needs_name: false, why: 'A key is needed.' } }), async ({ page }, gateway) => {
    await line(page, 'denied');
    await accessible(page, 'what a stranger sees', 'body');
    gateway.view.answer = () => { gateway.view.refused = 0; return { status: 200, body: {} }; };
    gateway.view.me = { actor: 'night', may_act: true, needs_name: false, why: '' };
    await page.click('#frozen [data-act="login"]');
    await page.fill('#login-key', 'gw_1_secret');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#x-okx', { timeout: SLOW });
    await page.waitForSelector('#who:has-text("acting as night")');
    assert.deepEqual(gateway.posts, [{ path: '/admin/v1/session', body: { key: 'gw_1_secret' } }]);
    const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]) + document.documentElement.outerHTML + document.getElementById('login-key').value);
    assert.ok(!kept.includes('gw_1_secret'), 'the key is kept nowhere');
  });
});

describe('by keyboard', () => {
  const okx = (more) => (now = Date.now()) => ({ ...everything(now), exchanges: [exchange('binance', now), exchange('okx', now, more)] });

  shown('isolate: nothing happens before a reason and a confirmation', () => ({
    overview: okx(),
    answer: (_, body) => ({ status: 200, body: { verb: 'isolate', exchange: 'okx', actor: 'local:kim', reason: body.reason, event: 'b1-1', changed: true, until: new Date(Date.now() + 900_000).toISOString(), recorded: ['redis'], clients: 'Clients get stale books.' } }),
  }), async ({ page }, gateway) => {
    await page.keyboard.press('2');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'x-okx');
    await page.keyboard.press('i');
    await page.waitForSelector('#order[open]');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'order-reason');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#order-problem:has-text("Say why")');
    await page.keyboard.type('i r p wrong prices'); // letters that mean something elsewhere
    await page.keyboard.press('Enter');
    await page.waitForSelector('#order-problem:has-text("Say who")');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'order-actor');
    assert.deepEqual(gateway.posts, []);
    await page.keyboard.type('kim');
    assert.match(await text(page, '.consequence'), /No request goes to okx.*balances are refused.*It ends by itself at/);
    await page.click('#order label.radio:has-text("15 min")');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#order[open]', { state: 'detached' });
    assert.deepEqual(gateway.posts, [{ path: '/admin/v1/isolate', body: { exchange: 'okx', reason: 'i r p wrong prices', for: '15m', actor: 'kim' } }]);
    assert.match(await text(page, '#toast'), /Clients get stale books\. Ends by itself at .* Survives a restart \(redis\)\./);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'x-okx', 'the focus is where it was');
  });

  shown('what is in force is said while the dialog is open, and a shorter order has to be meant', () => ({
    overview: okx(), me: { actor: 'night', may_act: true, needs_name: false, why: '' },
    answer: (_, body) => ({ status: 200, body: { verb: 'isolate', exchange: 'okx', actor: 'night', reason: body.reason, event: 'b1-1', changed: true, until: new Date(Date.now() + 900_000).toISOString(), recorded: ['redis'], clients: "Clients get stale books. It replaces cid's until 14:00 UTC: upgrade." } }),
  }), async ({ page }, gateway) => {
    const force = (actor, hours, more) => ({ kind: 'isolate', actor, reason: 'upgrade', since: new Date().toISOString(), until: new Date(Date.now() + hours * 3600_000).toISOString(), ...more });
    const inForce = (...overrides) => { gateway.view.overview = okx({ overrides }); };
    await page.waitForSelector('#who:has-text("acting as night")', { timeout: SLOW });
    await page.keyboard.press('2');
    await page.keyboard.press('i');
    await page.waitForSelector('#order .inforce:has-text("In force: nothing.")', { timeout: SLOW });
    await page.keyboard.type('wrong prices');
    await page.click('#order label.radio:has-text("15 min")');
    assert.equal(await page.locator('[name="earlier"]').count(), 0);

    inForce(force('ann', 1, { class: 'account' }), force('bob', 4)); // meanwhile, somebody else
    await page.waitForSelector('#order .inforce:has-text("isolated by bob")', { timeout: SLOW });
    assert.match(await text(page, '.inforce'), /^In force: isolated by bob until .*\d\d:\d\d \S+ \(upgrade\); your order replaces it\.isolated \(account\) by ann .*your order leaves it as it is\.$/);
    assert.match(await text(page, '.consent'), /It ends 3 h 4[0-5] min earlier than bob's/);
    assert.equal(await page.inputValue('#order-reason'), 'wrong prices', 'what was typed stays');
    await inBothSchemes(page, 'an order that shortens another', '#order');
    await page.click('#order button[type="submit"]');
    await page.waitForSelector('#order-problem:has-text("earlier than bob\'s")');
    assert.equal(await page.evaluate(() => document.activeElement.name), 'earlier');
    assert.deepEqual(gateway.posts, []);

    await page.check('[name="earlier"]');
    inForce(force('cid', 5)); // another override is another question
    await page.waitForSelector('#order .inforce:has-text("isolated by cid")', { timeout: SLOW });
    assert.equal(await page.isChecked('[name="earlier"]'), false);
    await page.check('[name="earlier"]');
    await page.click('#order button[type="submit"]');
    await page.waitForSelector('#order[open]', { state: 'detached' });
    assert.deepEqual(gateway.posts.map((p) => [p.path, p.body.for]), [['/admin/v1/isolate', '15m']]);
    assert.match(await text(page, '#toast'), /It replaces cid's until 14:00 UTC: upgrade\./);
  });

  shown('until HH:MM, one class', () => ({ overview: okx() }), async ({ page }, gateway) => {
    await page.keyboard.press('2');
    await page.keyboard.press('i');
    await page.selectOption('#order-class', 'account');
    assert.match(await text(page, '.consequence'), /Balances at okx are refused/);
    await page.fill('#order-until', '04:30');
    await page.fill('#order-reason', 'keys are being changed');
    await page.fill('#order-actor', 'kim');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#order[open]', { state: 'detached' });
    const { body } = gateway.posts[0];
    const until = new Date(body.until);
    assert.deepEqual([body.class, body.for, until.getHours(), until.getMinutes()], ['account', undefined, 4, 30]);
    assert.ok(until > new Date() && until - new Date() <= 24 * 3600 * 1000);
  });

  shown('a refusal is shown where it belongs, and what was typed stays', () => ({
    overview: okx({ state: 'banned', gates: [{ scope: 'ip', kind: 'banned', until: new Date(Date.now() + 60_000).toISOString() }] }),
    answer: () => ({ status: 409, body: { code: 'refused', detail: 'okx bans us for another 60 s: a probe would make it longer.' } }),
    me: { actor: 'night', may_act: true, needs_name: false, why: '' },
  }), async ({ page }) => {
    await page.waitForSelector('#who:has-text("acting as night")');
    await page.keyboard.press('2');
    await page.keyboard.press('p');
    await page.keyboard.type('is it back?');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#order-problem:has-text("bans us for another 60 s")');
    assert.equal(await page.inputValue('#order-reason'), 'is it back?');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#order[open]', { state: 'detached' });
  });

  shown('frames do not disturb: focus, typing and selection stay', () => ({ overview: okx() }), async ({ page }, gateway) => {
    await page.focus('[data-key="book:binance:BTC/USDT"]');
    for (let n = 1; n <= 3; n++) gateway.tell({ id: `b1-${n}`, at: new Date().toISOString(), type: 'action', exchange: 'okx', verb: 'probe', actor: 'night', reason: 'x' });
    await page.waitForSelector('#e-b1-3');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.key), 'book:binance:BTC/USDT');
    await page.keyboard.press('/');
    await page.keyboard.type('eth');
    await page.waitForFunction(() => document.querySelectorAll('#books tbody tr').length === 1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('t');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'timeline');
    await page.keyboard.press('?');
    await page.waitForSelector('#help[open]');
    await page.check('#help input');
    await page.keyboard.press('Escape');
    await page.keyboard.press('2');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'timeline', 'single keys can be switched off');
  });

  let idle = false;
  shown('the clients that do most are shown with what their quota refused, and nobody is said in words', () => ({ overview: () => (idle ? { ...okx()(), clients: [] } : okx()()) }), async ({ page }, gateway) => {
    await page.waitForSelector('#clients tbody tr');
    const rows = await page.locator('#clients tbody tr').allInnerTexts();
    assert.deepEqual(rows.map((r) => r.replace('without a key', 'without-a-key').split(/\s+/)), [['desk-a', '1200', '5940', '5', '3', '2'], ['desk-b', '12', '60', '0', '0', '0'], ['without-a-key', '2', '9', '0', '1', '0']]);
    assert.equal(await page.locator('#clients .badge.s-limited').count(), 1, 'a refusal is told by more than its number');
    idle = true;
    gateway.tell({ id: 'b1-9', at: new Date().toISOString(), type: 'action', exchange: 'okx', verb: 'probe', actor: 'night', reason: 'x' });
    await page.waitForSelector('#clients:has-text("No client did anything in the last minute.")');
  });

  shown('who may not act reads why, and is offered nothing to press', () => ({ me: { actor: null, may_act: false, needs_name: false, why: 'An ops key is needed.' } }), async ({ page }, gateway) => {
    await page.waitForSelector('#who:has-text("read-only: An ops key is needed.")');
    assert.equal(await page.locator('[data-act="order"]').count(), 0);
    await page.keyboard.press('2');
    await page.keyboard.press('i');
    await page.waitForSelector('#toast:has-text("Read-only")');
    assert.equal(await page.locator('#order[open]').count(), 0);
    assert.deepEqual(gateway.posts, []);
  });
});

describe('history', () => {
  shown('an outage with 37 probes is one flap on the timeline, and its lines can be found, linked and copied', () => ({ events: night() }), async ({ page, context }) => {
    await page.waitForSelector('#lanes .seg.s-open');
    const lane = page.locator('.lane', { hasText: 'okx' });
    assert.match(await lane.locator('.segments').getAttribute('aria-label'), /flapping ×37/);
    await page.click('[data-act="span"][data-hours="1"]');
    await page.waitForFunction(() => !document.querySelector('#lanes [title*="flapping"]'));
    await page.fill('#events-filter', 'isolated');
    await page.waitForFunction(() => document.querySelectorAll('.events li').length === 1);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.click('[data-act="copy-events"]');
    await page.waitForSelector('#toast:has-text("Copied")');
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.deepEqual(copied.map((e) => [e.verb, e.actor]), [['isolate', 'night']]);
    await page.fill('#events-filter', '');
    await page.evaluate(() => { location.hash = '#event=b1-1'; });
    await page.waitForSelector('#e-b1-1.linked');
    assert.ok(await page.locator('#e-b1-1').evaluate((e) => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight), 'the linked line is in view');
    await page.evaluate(() => { location.hash = '#event=b1-999'; });
    await page.waitForSelector('#events-list:has-text("b1-999 is not among")');
  });

  shown('an order that failed looks like one', () => {
    const at = (ago) => new Date(Date.now() - ago).toISOString();
    const order = { type: 'action', exchange: 'binance', verb: 'purge', symbol: 'BTC/USDT', actor: 'night', reason: 'wrong levels' };
    return { events: [{ id: 'b1-1', at: at(600_000), ...order }, { id: 'b1-2', at: at(599_000), ...order, failed: 'redis does not answer' }] };
  }, async ({ page }) => {
    const li = page.locator('#e-b1-2');
    assert.equal(await li.locator('.kind').textContent(), 'failed');
    assert.equal(await li.locator('.what').textContent(), 'night could not purge binance BTC/USDT: redis does not answer (asked for: wrong levels)');
    const shapes = await page.$$eval('.events .kind svg', (all) => all.map((s) => s.innerHTML));
    assert.equal(new Set(shapes).size, 2, 'an icon of its own');
    assert.match(await page.getAttribute('.mark[href="#event=b1-2"]', 'aria-label'), /^failed action on binance/);
  });

  shown('five thousand events are no burden', () => ({
    events: Array.from({ length: 5000 }, (_, i) => ({ id: `b1-${i + 1}`, at: new Date(Date.now() - (5000 - i) * 15_000).toISOString(), type: 'circuit', exchange: 'okx', class: 'market_data', from: i % 2 ? 'open' : 'closed', to: i % 2 ? 'closed' : 'open', cause: 'rate', window: { settled: 20, failures: 11 } })),
  }), async ({ page }) => {
    assert.ok(await page.locator('.events li').count() <= 100);
    assert.ok(await page.locator('.seg').count() < 400, 'what is too short to be seen is folded');
    await page.click('[data-act="more-events"]');
    await page.waitForFunction(() => document.querySelectorAll('.events li').length === 200);
  });
});
