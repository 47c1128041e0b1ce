// The browser: Debian's Chromium without a window, and what every test asks of a page.
import { chromium } from 'playwright-core';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });

/**
 * open opens the page in a context of its own. Whatever goes wrong in it is kept: errors of scripts, refusals of the policy,
 * requests to anywhere else.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const faults = [], requests = [];
  context.on('request', (r) => requests.push(r.url()));
  context.on('weberror', (e) => faults.push(String(e.error())));
  context.on('console', (m) => {
    // That a gateway which was killed does not answer is no fault of the page's.
    if (m.type() === 'error' && !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|status of 40/.test(m.text())) faults.push(m.text());
  });
  const page = await context.newPage();
  await page.goto(url);
  return {
    context, page, faults, requests,
    /** clean holds the page to what it promises. */
    clean() {
      assert.deepEqual(faults, [], 'the page is without faults');
      const origin = new URL(url).origin;
      assert.deepEqual(requests.filter((r) => new URL(r).origin !== origin), [], 'no request leaves the origin');
    },
  };
}

/**
 * accessible runs axe-core on the page as it is, or on a part of it. A script tag would be refused by the policy, so it is
 * evaluated.
 */
export async function accessible(page, what, part) {
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axe);
  const { violations } = await page.evaluate((p) => globalThis.axe.run(p ?? document, { resultTypes: ['violations'] }), part);
  const found = violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ''}`).join(' | ')}`);
  assert.deepEqual(found, [], `axe on ${what}`);
}

/** inBothSchemes is accessible in light and then in dark, on the same page: nothing is loaded twice. */
export async function inBothSchemes(page, what, part) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await accessible(page, `${what} in ${colorScheme}`, part);
  }
}

/** overflow is how many pixels the page is wider than its window. */
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
