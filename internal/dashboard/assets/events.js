// What happened and what was done, newest first: the audit. Each line has a link of its own.

import { h, patch, $ } from './dom.js';
import { icon } from './icons.js';
import { sentence } from './words.js';
import { time, exact, ms } from './time.js';

const PAGE = 100; // lines at once; more on demand

const ICONS = /** @type {Record<string, string>} */ ({ gate: 'banned', action: 'action', override: 'isolated', maintenance: 'maintenance' });
const NAMES = /** @type {Record<string, string>} */ ({ circuit: 'circuit', gate: 'limit', action: 'action', override: 'ended', maintenance: 'maintenance' });

/** name is the word for what an event is. @param {any} e */
const name = (e) => (e.failed ? 'failed' : NAMES[e.type] ?? e.type);
/** shape is its icon. @param {any} e */
const shape = (e) => (e.failed ? 'failed' : e.type === 'circuit' ? e.to : ICONS[e.type]);

/** linked is the id that the address names, if any. */
export const linked = () => decodeURIComponent(/^#event=([\w-]+)$/.exec(location.hash)?.[1] ?? '');

export function newEvents() {
  let limit = PAGE, drawn = '', gone = '';
  const matching = (/** @type {any} */ store) => {
    const filter = $('events-filter').value.trim().toLowerCase();
    return store.events.filter((/** @type {any} */ e) => !filter || `${e.id} ${e.type} ${name(e)} ${sentence(e)}`.toLowerCase().includes(filter));
  };
  return {
    more() { limit += PAGE; },
    /** json is what is shown, as the API gave it. @param {any} store */
    json: (store) => JSON.stringify(matching(store), null, 1),
    /** @param {any} store */
    draw(store) {
      const id = linked();
      const stamp = `${store.revision} ${limit} ${id} ${$('events-filter').value}`;
      if (stamp === drawn) return;
      drawn = stamp;
      const all = matching(store).reverse();
      const place = id ? all.findIndex((/** @type {any} */ e) => e.id === id) : -1;
      if (place >= limit) limit = place + PAGE;
      const shown = all.slice(0, limit);
      patch($('events-list'), [
        id && place < 0 && h('p', { class: 'warn', key: 'unknown' }, `The event ${id} is not among the ones that are shown here.`),
        all.length === 0 && h('p', { class: 'quiet', key: 'none' }, store.events.length ? 'No event matches the filter.' : 'Nothing has happened since the history began.'),
        h('ol', { class: 'events', key: 'events' }, shown.map((/** @type {any} */ e) => line(e, store.now, id))),
        all.length > limit && h('button', { type: 'button', key: 'more', 'data-act': 'more-events' }, `Show more (${all.length - limit} older)`),
      ]);
      if (place >= 0 && gone !== id) {
        document.getElementById(`e-${id}`)?.scrollIntoView({ block: 'center' });
      }
      gone = id;
    },
  };
}

/** @param {any} e @param {number} now @param {string} id */
function line(e, now, id) {
  return h('li', { key: e.id, id: `e-${e.id}`, class: `e-${e.type}${e.failed ? ' e-failed' : ''}${e.id === id ? ' linked' : ''}` },
    h('a', { href: `#event=${e.id}`, title: `${exact(e.at)}, event ${e.id}` }, time(ms(e.at), now)),
    h('span', { class: 'kind' }, icon(shape(e)), h('span', null, name(e))),
    h('span', { class: 'what' }, sentence(e)));
}
