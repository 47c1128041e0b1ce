// examples/go, examples/python and examples/js, through an outage: what they show is labelled, and they go on afterwards.
import { describe, it, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { demo, example, later, root, run, start, tidy, until } from './stage.mjs';

const { chromium } = createRequire(join(root, 'test', 'dashboard', 'browser.mjs'))('playwright-core');

describe('bots', () => {
  let gateway, site;
  after(tidy);
  before(async () => {
    // The page's own server: nothing but the files of this repository that it needs.
    const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript' };
    const server = createServer(async (req, res) => {
      const path = normalize(new URL(req.url, 'http://page').pathname);
      if (!/^\/(examples|clients)\/js\//.test(path)) return res.writeHead(404).end();
      const file = path.endsWith('/') ? `${path}index.html` : path;
      const text = await readFile(join(root, file)).catch(() => undefined);
      res.writeHead(text ? 200 : 404, { 'Content-Type': types[extname(file)] ?? 'text/plain' }).end(text);
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    later(() => server.close());
    site = `http://127.0.0.1:${server.address().port}`;
    gateway = await demo({ settings: [`cors_origins=${site}`] });
    await gateway.live('okx', 'BTC/USDT');
  });

  const outage = async (tried) => {
    await gateway.breaks('okx', { kind: 'maintenance' });
    await gateway.breaks('okx', { kind: 'silent' });
    try {
      await tried();
    } finally {
      await gateway.heals('okx');
    }
  };

  it('Go: watches books, and says when they are not live', async (t) => {
    const dir = gateway.dir;
    await run('go', ['build', '-o', join(dir, 'watcher'), './examples/go']);
    const watcher = start(join(dir, 'watcher'), ['coinbase', 'BTC/USD'], { env: { GATEWAY_URL: gateway.public, GATEWAY_KEY: gateway.key } });
    t.after(() => watcher.stop('SIGKILL'));
    const shows = (what, after = 0) => until(`the watcher shows ${what}`, () => what.test(watcher.out.slice(after)));
    await shows(/BTC\/USD.*live/i);
    await gateway.breaks('coinbase', { kind: 'cut', latency: '1ms', count: 1 });
    await gateway.breaks('coinbase', { kind: 'maintenance', for: '5s' });
    await shows(/BTC\/USD.*stale/i);
    const sofar = watcher.out.length;
    await gateway.heals('coinbase');
    await shows(/BTC\/USD.*live/i, sofar);
    assert.equal(await watcher.stop('SIGINT'), 0, watcher.text);
  });

  it('Python: quotes on live books and known balances alone', async () => {
    const bot = (rounds) => run('python3', [example('python', 'quote_bot.py'), '--rounds', String(rounds)], { env: { GATEWAY_URL: gateway.public, GATEWAY_KEY: gateway.key } });
    await until('the bot quotes', async () => /^QUOTE /m.test(await bot(5)));
    await outage(async () => {
      await until('the bot stops', async () => {
        const text = await bot(5);
        return /^STOP /m.test(text) && !/^QUOTE /m.test(text);
      });
    });
  });

  it('Python: a wrong key is said to be one', async () => {
    const wrong = `${gateway.key.slice(0, -1)}${gateway.key.endsWith('0') ? '1' : '0'}`;
    const bot = run('python3', [example('python', 'quote_bot.py'), '--rounds', '1'], { env: { GATEWAY_URL: gateway.public, GATEWAY_KEY: wrong } });
    await assert.rejects(bot, /does not take the key in GATEWAY_KEY/);
  });

  it('JavaScript: a page with a live book', async (t) => {
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'] });
    t.after(() => browser.close());
    const page = await browser.newPage();
    const problems = [];
    page.on('pageerror', (err) => problems.push(err.message));
    await page.goto(`${site}/examples/js/?gateway=${gateway.public}&exchange=binance&symbol=BTC/USDT&depth=5`);
    await page.locator('[data-state=live]').waitFor({ timeout: 30_000 });
    await page.locator('#book tbody tr').nth(4).waitFor({ timeout: 30_000 });
    const mid = await page.locator('#mid').textContent();
    assert.match(mid, /^\d+\.\d+$/);
    assert.deepEqual(problems, []);
  });
});
