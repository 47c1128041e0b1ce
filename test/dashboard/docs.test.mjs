// The contract for people, /docs on the public listener: whole in itself, under its policy, in a browser.
import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { launch, open } from './browser.mjs';
import { stage } from './stage.mjs';

const SLOW = 45_000; // ms: what a loaded machine may take

let browser, gateway;
before(async () => { [browser, gateway] = await Promise.all([launch(), stage()]); });
after(async () => { await Promise.all([browser?.close(), gateway?.close()]); });

describe('the documentation', () => {
  it('shows every operation of the document, loads nothing from elsewhere, and answers what is tried out', { timeout: 180_000 }, async () => {
    const doc = await (await fetch(`${gateway.public}/openapi.json`)).json();
    const operations = Object.values(doc.paths).flatMap((item) => Object.keys(item).filter((m) => ['get', 'post', 'put', 'delete'].includes(m)));
    const p = await open(browser, `${gateway.public}/docs`);
    try {
      await p.page.waitForSelector('.opblock', { timeout: SLOW });
      assert.equal(await p.page.locator('.opblock').count(), operations.length);
      assert.equal(await p.page.textContent('.info .title').then((t) => t.includes(doc.info.title)), true);

      const book = p.page.locator('#operations-books-getOrderBook');
      await book.locator('.opblock-summary-control').click();
      await book.locator('.parameters').first().waitFor({ timeout: SLOW });
      assert.deepEqual(await book.locator('.parameter__name').evaluateAll((all) => all.map((e) => e.firstChild.textContent.trim())),
        ['exchange', 'symbol', 'depth', 'max_age_ms', 'require', 'format', 'accept_stale']);

      const list = p.page.locator('#operations-exchanges-listExchanges');
      await list.locator('.opblock-summary-control').click();
      await list.locator('.try-out__btn').click({ timeout: SLOW });
      await list.locator('.execute').click();
      const answer = list.locator('.live-responses-table .response-col_status').nth(1);
      await answer.waitFor({ timeout: SLOW });
      assert.match(await answer.textContent(), /^200/);

      const order = p.page.locator('#operations-admin-isolate');
      await order.locator('.opblock-summary-control').click();
      await order.locator('.opblock-body').waitFor({ timeout: SLOW });
      assert.equal(await order.locator('.try-out__btn').count(), 0, 'orders are not for this page');
      p.clean();
    } finally {
      await p.context.close();
    }
  });
});
