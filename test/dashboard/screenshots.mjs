// Pictures of the demo in the middle of an outage, in both schemes at the same moment.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, open } from './browser.mjs';

const [listen, admin] = ['127.0.0.1:18080', '127.0.0.1:18081'];
const demo = spawn(fileURLToPath(new URL('../../bin/gateway', import.meta.url)), ['demo', '--listen', listen, '--admin-listen', admin, '--every', '80s', '--outage', '30s'], { stdio: ['ignore', 'ignore', 'inherit'] });
const ended = new Promise((resolve) => { demo.on('exit', resolve); });
const browser = await launch();
try {
  for (let n = 0; !await fetch(`http://${admin}/readyz`).then((r) => r.ok, () => false); n++) {
    if (n === 300 || demo.exitCode !== null) throw new Error('the demo does not listen');
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  const pages = await Promise.all(['light', 'dark'].map(async (scheme) => ({
    scheme, ...await open(browser, `http://${admin}/`, { colorScheme: scheme, viewport: { width: 1280, height: 1250 } }),
  })));
  for (const { page } of pages) await page.waitForSelector('.card.s-open .countdown', { timeout: 120_000 });
  await fetch(`http://${admin}/admin/v1/withhold`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ exchange: 'coinbase', symbol: 'BTC/USD', for: '45m', reason: 'spread looks wrong, asked their support', actor: 'kim' }),
  });
  for (const { page } of pages) await page.waitForSelector('.card.s-withheld', { timeout: 30_000 });
  for (const { page, scheme } of pages) await page.screenshot({ path: join(process.argv[2], `dashboard-${scheme}.png`) });
} finally {
  await browser.close();
  demo.kill('SIGTERM');
  await ended;
}
