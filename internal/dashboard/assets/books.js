// The books that clients get: how old each is, against the age up to which it is live and the age beyond which it is refused.

import { h, patch, $ } from './dom.js';
import { badge } from './icons.js';
import { table, bar } from './tables.js';
import { age, ms } from './time.js';

const ICONS = /** @type {Record<string, string>} */ ({ live: 'closed', stale: 'limited', syncing: 'half_open', withheld: 'withheld' });

/** bookKey @param {any} b */
export const bookKey = (b) => `${b.exchange}:${b.symbol}`;

/** ageNow is the age of a book at a moment: the frame's age, and what passed since. @param {any} b @param {any} store */
export const ageNow = (b, store) => (b.age_ms === null ? null : b.age_ms + Math.max(0, store.now - ms(store.overview.now)));

/** books: what is not live comes first, the oldest first; live ones by name, so that no row jumps. @param {any} store */
export function books(store) {
  const filter = $('books-filter').value.trim().toLowerCase();
  const all = store.overview.books;
  const shown = all.filter((/** @type {any} */ b) => `${b.exchange} ${b.symbol} ${b.status} ${b.source} ${b.reason ?? ''}`.toLowerCase().includes(filter));
  shown.sort((/** @type {any} */ a, /** @type {any} */ b) => Number(a.status === 'live') - Number(b.status === 'live')
    || (a.status !== 'live' && (b.age_ms ?? 0) - (a.age_ms ?? 0)) || bookKey(a).localeCompare(bookKey(b)));
  patch($('books'), shown.length
    ? table('Books that were answered in the last ten minutes, or that are streamed',
      ['Book', 'Age', 'Status', 'Source', 'Best bid', 'Best ask', 'Spread'], shown.map((/** @type {any} */ b) => row(b, store)))
    : h('p', { class: 'quiet', key: 'none' }, all.length ? 'No book matches the filter.' : 'No book was answered in the last ten minutes, and none is streamed.'));
}

/** @param {any} b @param {any} store */
function row(b, store) {
  const old = ageNow(b, store);
  return {
    key: bookKey(b),
    class: `b-${b.status}`,
    cells: [
      h('button', { type: 'button', class: 'open', 'data-act': 'drawer', 'data-key': `book:${bookKey(b)}` }, `${b.exchange} ${b.symbol}`),
      old === null ? 'nothing held' : [h('span', { class: 'num' }, age(old)), ageBar(b, old)],
      badge(ICONS[b.status] ?? 'limited', b.reason ? `${b.status}: ${b.reason}` : b.status),
      b.source || 'none',
      h('span', { class: 'num' }, b.bid ?? 'none'),
      h('span', { class: 'num' }, b.ask ?? 'none'),
      h('span', { class: 'num' }, b.spread ?? 'none'),
    ],
  };
}

/**
 * ageBar: half of it is the time in which a book is live, the other half what is left until it is refused, which is far
 * longer. @param {any} b @param {number} old
 */
function ageBar(b, old) {
  const live = old <= b.fresh_for_ms;
  const share = live ? 0.5 * (old / Math.max(1, b.fresh_for_ms))
    : 0.5 + 0.5 * ((old - b.fresh_for_ms) / Math.max(1, b.stale_max_ms - b.fresh_for_ms));
  return bar(share, b.status === 'live' ? 'good' : share >= 1 ? 'bad' : 'half', 0.5);
}
