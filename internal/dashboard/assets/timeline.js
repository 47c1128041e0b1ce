// 24 hours at a glance, one lane per exchange. A state is a texture and a colour; what was done is a mark that leads to its
// line in the audit.

import { h, patch, $ } from './dom.js';
import { table } from './tables.js';
import { icon } from './icons.js';
import { segments, markers } from './segments.js';
import { stateWord, WORST } from './words.js';
import { span, time, minute, ms, exact } from './time.js';

const HOUR = 3_600_000;
const EVERY = 10_000; // ms: without a new event, a lane moves by less than a pixel in that time
/** @type {Record<string, string>} */
const MARKS_SAID = { gate: 'ban', failed: 'failed action' };
const MARKS = 200; // in a lane: more could not be told apart

/** newTimeline draws when there is a new event, another span, or when some time has passed. */
export function newTimeline() {
  let hours = 24, drawn = '', open = false, chosen = false;
  return {
    /** @param {number} n */
    choose(n) {
      chosen = true;
      this.show(n);
    },
    /** show @param {number} n */
    show(n) {
      hours = n;
      for (const b of document.querySelectorAll('[data-act="span"]')) b.setAttribute('aria-pressed', String(Number(/** @type {HTMLElement} */ (b).dataset.hours) === n));
    },
    /** @param {any} store */
    draw(store) {
      const o = store.overview, now = store.now;
      if (!chosen) { // a gateway that started lately has nothing to show in 23 of 24 hours
        const known = (now - ms(o.history_since)) / HOUR;
        this.show(known <= 0.9 ? 1 : known <= 5 ? 6 : 24);
      }
      const details = document.getElementById('lanes-details');
      if (details instanceof HTMLDetailsElement) open = details.open;
      const stamp = `${store.revision} ${hours} ${Math.floor(now / EVERY)} ${open} ${o.exchanges.map((/** @type {any} */ e) => e.state)}`;
      if (stamp === drawn) return;
      drawn = stamp;
      const asked = now - hours * HOUR, since = ms(o.history_since);
      const lanes = o.exchanges.map((/** @type {any} */ e) => ({ id: e.id, all: segments(store.events, e.id, Math.max(asked, since), now, e), marks: markers(store.events, e.id, asked, now).slice(-MARKS) }));
      patch($('lanes'), [
        h('div', { class: 'lanes', key: 'lanes' }, lanes.map((/** @type {any} */ l) => lane(l, asked, now, since))),
        axis(asked, now),
        legend(lanes),
        h('p', { class: 'quiet', key: 'since' }, since > asked + 60_000 ? `History runs since ${time(since, now)}; what was before is not known.` : 'History is complete.'),
        h('details', { id: 'lanes-details', key: 'details' }, h('summary', null, 'The same as a table'), open && list(lanes, now)),
      ]);
      // toggle does not bubble: the table is made when it is first opened.
      const el = /** @type {HTMLDetailsElement} */ ($('lanes-details'));
      el.ontoggle = () => { if (el.open !== open) this.draw(store); };
    },
  };
}

/** flapping says how often an exchange came and went within one segment, if it did. @param {any} s */
function flapping(s) {
  const times = Math.max(s.opens, s.probes);
  return times > 1 && `flapping ×${times}`;
}

/** name says what a segment is. @param {any} s @param {number} now */
function name(s, now) {
  const flaps = flapping(s) || stateWord(s.state);
  return `${flaps}, ${time(s.from, now)} to ${s.to >= now ? 'now' : time(s.to, now)} (${span(s.to - s.from)})`;
}

/** @param {any} l @param {number} from @param {number} to @param {number} since */
function lane(l, from, to, since) {
  const at = (/** @type {number} */ t) => `${(100 * (Math.max(from, t) - from)) / (to - from)}%`;
  const width = (/** @type {any} */ s) => `${(100 * (s.to - Math.max(from, s.from))) / (to - from)}%`;
  const bad = l.all.filter((/** @type {any} */ s) => s.state !== 'closed');
  const words = bad.length === 0 ? `${l.id}: answered all the time` : `${l.id}: ${bad.slice(-5).map((/** @type {any} */ s) => name(s, to)).join('; ')}`;
  return h('div', { class: 'lane', key: l.id },
    h('span', { class: 'lanename' }, l.id),
    h('div', { class: 'track' },
      h('div', { class: 'segments', role: 'img', 'aria-label': words },
        since > from && h('span', { class: 'seg unknown', key: 'unknown', vars: { left: '0', width: at(since) } }),
        l.all.map((/** @type {any} */ s) => h('span', { key: s.from, class: `seg s-${s.state}`, title: name(s, to), vars: { left: at(s.from), width: width(s) } },
          (s.to - s.from) / (to - from) > 0.12 && flapping(s)))),
      l.marks.map((/** @type {any} */ m) => h('a', {
        key: m.id, class: `mark m-${m.type}`, href: `#event=${m.id}`, title: exact(m.at), vars: { left: at(m.at) },
        'aria-label': `${MARKS_SAID[m.type] ?? 'action'} on ${l.id} at ${time(m.at, to)}`,
      }, icon(m.type === 'gate' ? 'banned' : m.type)))));
}

/** legend names the textures that are there. @param {any[]} lanes */
function legend(lanes) {
  const there = new Set(lanes.flatMap((l) => l.all.map((/** @type {any} */ s) => s.state)));
  return h('ul', { class: 'legend', key: 'legend' }, WORST.filter((s) => there.has(s)).map((s) => h('li', { key: s },
    h('span', { class: `swatch seg s-${s}`, 'aria-hidden': 'true' }), stateWord(s))));
}

/** axis @param {number} from @param {number} to */
function axis(from, to) {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => h('span', { key: share }, share === 1 ? 'now' : minute(from + share * (to - from))));
  return h('div', { class: 'axis', 'aria-hidden': 'true', key: 'axis' }, marks);
}

/** list @param {any[]} lanes @param {number} now */
function list(lanes, now) {
  const rows = lanes.flatMap((l) => l.all.filter((/** @type {any} */ s) => s.state !== 'closed').slice(-100).reverse().map((/** @type {any} */ s) => ({
    key: `${l.id}-${s.from}`,
    cells: [l.id, stateWord(s.state), time(s.from, now), s.to >= now ? 'now' : time(s.to, now), span(s.to - s.from), String(s.opens), String(s.probes)],
  })));
  return rows.length ? table('When an exchange did not plainly answer', ['Exchange', 'State', 'From', 'To', 'For', 'Times opened', 'Tries'], rows)
    : h('p', { class: 'quiet' }, 'Every exchange answered all the time.');
}
