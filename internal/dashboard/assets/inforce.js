// What an operator already put in force, seen from an order that is being written: what it replaces, ends or leaves alone.

import { className } from './words.js';
import { moment, rough, ms } from './time.js';

const MOST = 5; // lines in a dialog: an exchange can have hundreds of pairs withheld. Of more, the number is said

/** @typedef {'replaced'|'ended'|'forbids'|'stays'} Effect */

/** What comes of it, and what stands first: what the order changes. @type {Record<Effect, string>} */
const THEN = {
  replaced: 'your order replaces it',
  ended: 'your order ends it',
  forbids: 'no probe is sent while it is',
  stays: 'your order leaves it as it is',
};
const ORDER = /** @type {Effect[]} */ (Object.keys(THEN));

/**
 * effect is what an order does to an override of its exchange, by the gateway's own rules: a later one takes the place of an
 * earlier one about exactly the same; a release of a class or a pair ends exactly its own, one of neither ends all.
 * @param {{verb: string, class?: string, symbol?: string}} order @param {any} o @returns {Effect}
 */
export function effect(order, o) {
  const cls = order.class ?? '', symbol = order.symbol ?? '';
  switch (order.verb) {
    case 'isolate':
      return o.kind === 'isolate' && (o.class ?? '') === cls ? 'replaced' : 'stays';
    case 'withhold':
      return o.kind === 'withhold' && (o.symbol ?? '') === symbol ? 'replaced' : 'stays';
    case 'release':
      if (cls) return o.kind === 'isolate' && o.class === cls ? 'ended' : 'stays';
      if (symbol) return o.kind === 'withhold' && o.symbol === symbol ? 'ended' : 'stays';
      return 'ended';
    case 'probe':
      return o.kind === 'isolate' && (!o.class || !cls || o.class === cls) ? 'forbids' : 'stays';
  }
  return 'stays';
}

/**
 * inForce are the lines about what is in force, what the order changes first.
 * @param {{verb: string, class?: string, symbol?: string}} order @param {any[]} overrides @param {number} now
 * @returns {string[]}
 */
export function inForce(order, overrides, now) {
  const all = overrides.map((o) => ({ o, effect: effect(order, o) })).sort((a, b) => ORDER.indexOf(a.effect) - ORDER.indexOf(b.effect));
  const lines = all.slice(0, MOST).map((x) => `${byWhom(x.o, now)}; ${THEN[x.effect]}.`);
  if (all.length > MOST) lines.push(`And ${all.length - MOST} more.`);
  return lines;
}

/** byWhom is an override with its author, end and reason. It changes only when the override does. @param {any} o @param {number} now */
function byWhom(o, now) {
  const what = o.kind === 'withhold' ? `withheld${o.symbol ? ` (${o.symbol})` : ''}` : `isolated${o.class ? ` (${className(o.class)})` : ''}`;
  return `${what} by ${o.actor} until ${moment(o.until, now)} (${o.reason})`;
}

/**
 * shortened is the override that an order would end earlier than its author meant it to end, and by how much, if there is one.
 * @param {{verb: string, class?: string, symbol?: string}} order @param {any[]} overrides @param {number} end of the order, in ms
 * @returns {{override: any, by: string} | undefined}
 */
export function shortened(order, overrides, end) {
  const o = overrides.find((x) => effect(order, x) === 'replaced');
  const by = o ? ms(o.until) - end : 0;
  return by >= 1000 ? { override: o, by: rough(by) } : undefined; // NaN, an end that is not yet said, is no less
}
