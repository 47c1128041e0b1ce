// The last five minutes of one exchange: errors, latency, requests; each a picture and the same in words.

import { h } from './dom.js';
import { chart } from './charts.js';
import { percent } from './words.js';
import { age } from './time.js';

const errors = chart([
  { name: 'errors', stroke: '--bad', fill: '--bad-soft' },
  { name: 'limit', stroke: '--soft', dash: [4, 3], width: 1 },
]);
const latency = chart([{ name: 'p99', stroke: '--half' }, { name: 'p50', stroke: '--good' }]);
const requests = chart([
  { name: 'sent and refused', stroke: '--bad', fill: '--bad-soft' },
  { name: 'sent', stroke: '--good', fill: '--good-soft' },
], true);

/** @param {number[]} column */
const sum = (column) => column.reduce((a, b) => a + b, 0);
/** newest is the last value that there is. @param {(number|null)[]} column */
const newest = (column) => column.findLast((v) => v !== null) ?? null;

/** rate reads well below one a second, too. @param {number} perSecond */
const rate = (perSecond) => (perSecond === 0 ? '0/s' : perSecond < 1 ? `${(perSecond * 60).toFixed(perSecond < 0.1 ? 1 : 0)}/min` : `${perSecond.toFixed(1)}/s`);

/** sparks @param {any} e one exchange of the overview @param {number} up for how long the gateway runs, in ms */
export function sparks(e, up) {
  const s = e.samples;
  const n = s?.attempts?.length ?? 0;
  if (n === 0) return h('p', { class: 'quiet' }, 'Nothing was asked in the last five minutes.');
  const xs = s.attempts.map((/** @type {number} */ _, /** @type {number} */ i) => i);
  const step = s.step_ms / 1000, stamp = `${s.from} ${n}`;
  const seconds = Math.max(step, Math.min(n * step, up / 1000)); // before its start it asked for nothing, which is no rate
  // What the gateway asked for of its own accord was refused to nobody.
  const turned = e.answering?.status === 'not_asked' ? s.refused.map(() => 0) : s.refused;
  const attempts = sum(s.attempts), failures = sum(s.failures), refused = sum(turned), retries = sum(s.retries);
  const limit = e.circuits.find((/** @type {any} */ c) => c.class === 'market_data')?.thresholds.rate ?? null;
  const ratio = s.attempts.map((/** @type {number} */ a, /** @type {number} */ i) => (a ? s.failures[i] / a : null));
  const p50 = newest(s.p50_ms), p99 = newest(s.p99_ms);
  const total = attempts ? percent(failures / attempts) : 'no request';
  return h('div', { class: 'sparks' },
    spark('Errors', errors, { stamp, xs, ys: [ratio, xs.map(() => limit)], top: 1 },
      `${total}${limit === null ? '' : `, a circuit opens at ${percent(limit)}`}`),
    spark('Latency', latency, { stamp, xs, ys: [s.p99_ms, s.p50_ms] },
      p50 === null ? 'no answer' : `half within ${age(p50)}, 99 % within ${age(p99 ?? p50)}`),
    spark('Requests', requests, {
      stamp,
      xs,
      ys: [s.attempts.map((/** @type {number} */ a, /** @type {number} */ i) => (a + turned[i]) / step), s.attempts.map((/** @type {number} */ a) => a / step)],
    }, `${rate(attempts / seconds)} sent, ${rate(refused / seconds)} refused, ${attempts ? (retries / attempts).toFixed(2) : '0'} retries each`));
}

/** @param {string} name @param {any} widget @param {any} data @param {string} words */
const spark = (name, widget, data, words) => h('figure', { class: 'spark', key: name },
  h('figcaption', null, h('b', null, name), ' ', h('span', null, words)),
  h('div', { class: 'canvas', 'aria-hidden': 'true', widget, data }));
