// Every circuit: what it computed, the override beside it, its counts against the thresholds, and the worst of 24 hours, which
// is what a threshold has to be compared with.

import { h, patch, $ } from './dom.js';
import { badge } from './icons.js';
import { table } from './tables.js';
import { circuitWord, className, percent } from './words.js';
import { span, countdown, exact, ms } from './time.js';

/** circuitKey names a circuit in the drawer and in links. @param {string} exchange @param {any} c */
export const circuitKey = (exchange, c) => [exchange, c.class, c.family].filter(Boolean).join('/');

/** circuits @param {any} store */
export function circuits(store) {
  const now = store.now;
  const rows = store.overview.exchanges.flatMap((/** @type {any} */ e) => e.circuits.map((/** @type {any} */ c) => row(e.id, c, now)));
  patch($('circuits'), table('Circuits of every exchange',
    ['Circuit', 'Computed', 'Override', 'Since', 'Failed in the window', 'Failures in a row', 'Worst of 24 h', 'Last change'], rows));
}

/** @param {string} exchange @param {any} c @param {number} now */
function row(exchange, c, now) {
  const key = circuitKey(exchange, c);
  const t = c.thresholds, w = c.window;
  return {
    key,
    class: `s-${c.isolated ? 'isolated' : c.state}`,
    cells: [
      h('button', { type: 'button', class: 'open', 'data-act': 'drawer', 'data-key': `circuit:${key}` }, `${exchange} ${className(c.class, c.family)}`),
      badge(c.state, circuitWord(c.state)),
      c.isolated ? badge('isolated', 'isolated') : 'none',
      h('span', { title: exact(c.since) }, span(now - ms(c.since)), next(c, now)),
      `${w.failures} of ${w.settled}, limit ${percent(t.rate)}`,
      `${w.consecutive}, limit ${t.consecutive}`,
      worst(c),
      c.cause_text || 'none',
    ],
  };
}

/** @param {any} c @param {number} now */
function next(c, now) {
  if (c.probe_due) return '; probe due';
  return c.open_until ? `; probe in ${countdown(ms(c.open_until) - now)}` : '';
}

/** worst @param {any} c */
export const worst = (c) => `${c.worst.consecutive} in a row, ${percent(c.worst.failure_share)} failed, ${percent(c.worst.slow_share)} slow`;
