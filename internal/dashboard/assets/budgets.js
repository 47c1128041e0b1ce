// What each exchange permits us, what we permit ourselves, and what is used; and what it has forbidden for now.

import { h, patch, $ } from './dom.js';
import { icon } from './icons.js';
import { table, bar } from './tables.js';
import { scope } from './words.js';
import { countdown, time, span, ms } from './time.js';

/** budgets @param {any} store */
export function budgets(store) {
  const now = store.now;
  const gates = store.overview.exchanges.flatMap((/** @type {any} */ e) => e.gates.map((/** @type {any} */ g) => h('li', { key: `${e.id}-${g.scope}-${g.name}` },
    icon('banned'), h('span', null, `${e.id}: no request ${scope({ kind: g.scope, name: g.name })} until ${time(g.until, now)}, for another ${countdown(ms(g.until) - now)}: ${g.kind}`))));
  const rows = store.overview.exchanges.flatMap((/** @type {any} */ e) => e.budgets.map((/** @type {any} */ b) => row(e.id, b)));
  patch($('budgets'), [
    gates.length ? h('ul', { class: 'force', key: 'gates' }, gates) : h('p', { class: 'quiet', key: 'no-gates' }, 'No exchange limits or bans us at the moment.'),
    rows.length > 0 && table('Rate budgets', ['Limit', 'Used of our share', 'The exchange permits', 'Waiting calls'], rows),
  ]);
}

/** @param {string} exchange @param {any} b */
function row(exchange, b) {
  const share = b.share ? b.used / b.share : 0;
  return {
    key: `${exchange}/${b.limit}`,
    cells: [
      `${exchange} ${b.limit}`,
      [h('span', { class: 'num' }, `${b.used} of ${b.share}`), bar(share, share >= 0.9 ? 'bad' : share >= 0.7 ? 'half' : 'good')],
      `${b.capacity} in ${span(b.window_ms)}`,
      String(b.waiting),
    ],
  };
}
