// Who acts, at a real gateway that has an ops key: nobody without it, and by a cookie that outlives the gateway.
import { it } from 'node:test';
import assert from 'node:assert/strict';
import { launch, open } from './browser.mjs';
import { stage } from './stage.mjs';

const SLOW = 45_000; // ms: what a loaded machine may take
const line = (page, want) => page.waitForFunction((w) => document.documentElement.dataset.line === w, want, { timeout: SLOW });

it('a key is swapped for a cookie, which acts under its name, survives a restart and ends', { timeout: 180_000 }, async () => {
  const [browser, gateway] = await Promise.all([launch(), stage()]);
  const p = await open(browser, gateway.admin);
  const { page, context } = p;
  try {
    await line(page, 'live');
    const key = await gateway.key('ops:write', 'night shift');
    await gateway.kill();
    await gateway.serve(); // which knows the key now
    await page.click('#who [data-act="login"]', { timeout: SLOW });
    assert.equal(await page.locator('[data-act="order"]').count(), 0, 'without the key the page is read-only');

    await page.fill('#login-key', `${key}x`);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById('login-problem').textContent !== '', null, { timeout: SLOW });
    assert.equal(await page.inputValue('#login-key'), '', 'a wrong key is not left in the field');
    await page.fill('#login-key', key);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#who:has-text("acting as night shift")', { timeout: SLOW });
    const [cookie] = await context.cookies();
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path], ['gateway_ops', true, 'Strict', '/']);
    assert.ok(!cookie.value.includes(key.split('_').at(-1)), 'the cookie is not the key');

    await gateway.kill();
    await page.waitForFunction(() => document.documentElement.dataset.line !== 'live', null, { timeout: SLOW });
    await gateway.serve();
    await line(page, 'live');
    await page.click('[data-verb="isolate"][data-exchange="okx"]', { timeout: SLOW });
    assert.equal(await page.locator('#order-actor').count(), 0, 'the key says who acts');
    await page.fill('#order-reason', 'after the restart');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#x-okx.s-isolated', { timeout: SLOW });
    await page.waitForSelector('#events-list:has-text("night shift isolated okx")', { timeout: SLOW });

    await page.click('[data-act="logout"]');
    await page.waitForSelector('#who:has-text("read-only")', { timeout: SLOW });
    assert.deepEqual(await context.cookies(), []);
    p.clean();
  } finally {
    await context.close();
    await Promise.all([browser.close(), gateway.close()]);
  }
});
