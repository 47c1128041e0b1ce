// One card per exchange, the worst first and the healthy ones small: on a phone what is broken is what one sees.

import { h, patch, $ } from './dom.js';
import { badge, icon } from './icons.js';
import { sparks } from './sparks.js';
import { stateWord, circuitWord, meaning, className, overrideWords, scope, WORST } from './words.js';
import { span, countdown, age, time, exact, minute, ms } from './time.js';

const LEVELS = ['down', 'degraded', 'notice', 'ok'];

/** bySeverity sorts exchanges, the worst first; those that are as bad as each other stay in the order of their names.
 * @param {any[]} exchanges @returns {any[]} */
export function bySeverity(exchanges) {
  const rank = (/** @type {any} */ e) => LEVELS.indexOf(e.level) * WORST.length + WORST.indexOf(e.state);
  return exchanges.toSorted((a, b) => rank(a) - rank(b));
}

/** cards @param {any} store @param {any} me */
export function cards(store, me) {
  patch($('exchanges'), bySeverity(store.overview.exchanges).map((/** @type {any} */ e, /** @type {number} */ i) => card(e, i, store.now, ms(store.overview.started_at), me)));
}

/** @param {any} e @param {number} i @param {number} now @param {number} started @param {any} me */
function card(e, i, now, started, me) {
  return h('article', { key: e.id, id: `x-${e.id}`, class: `card s-${e.state}${small(e) ? ' small' : ''}`, tabindex: '-1', 'data-exchange': e.id, 'aria-labelledby': `n-${e.id}` },
    h('div', { class: 'cardhead' },
      h('h2', { id: `n-${e.id}` }, e.id),
      badge(e.state, stateWord(e.state)),
      i < 9 && h('kbd', { class: 'jump', title: `press ${i + 1} to come here` }, i + 1)),
    h('p', { class: 'why' }, e.why || `No trouble: ${meaning(e.state)}.`),
    h('p', { class: 'gets' }, h('b', null, 'Clients get: '), e.clients || 'live answers'),
    probe(e, now),
    beside(e, now),
    h('dl', { class: 'facts' },
      fact('Since', e.since ? h('span', { title: exact(e.since) }, `${time(e.since, now)}, for ${span(now - ms(e.since))}`) : 'the start'),
      fact('Last good answer', e.last_success ? `${span(now - ms(e.last_success))} ago` : 'none yet'),
      fact('Answers, 5 min', served(e.served)),
      e.streams && fact('Streams', streams(e.streams, now))),
    sparks(e, now - started),
    actions(e, me));
}

/** small tells that there is nothing to say of an exchange but that it answers, or that nobody asks. @param {any} e */
const small = (e) => e.level === 'ok' && !e.overrides.length && !e.gates.length && !e.maintenance.length;

/** fact @param {string} name @param {any} value */
const fact = (name, value) => h('div', { key: name }, h('dt', null, name), h('dd', null, value));

/** probe is the countdown. @param {any} e @param {number} now */
function probe(e, now) {
  if (e.probe_due) return h('p', { class: 'next', key: 'next' }, 'The next call tries it.');
  if (!e.next_probe_at) return null;
  const left = ms(e.next_probe_at) - now;
  return h('p', { class: 'next', key: 'next' }, 'Next try ',
    h('span', { class: 'countdown', title: exact(e.next_probe_at) }, left > 0 ? `in ${countdown(left)}` : 'now'));
}

/** beside is what somebody put in force, and what the circuits found out themselves: both, always. @param {any} e @param {number} now */
function beside(e, now) {
  const lines = [
    ...e.overrides.map((/** @type {any} */ o) => h('li', { key: `o-${o.kind}-${o.class}-${o.symbol}` },
      icon(o.kind === 'withhold' ? 'withheld' : 'isolated'), h('span', null, overrideWords(o, now)))),
    ...e.gates.map((/** @type {any} */ g) => h('li', { key: `g-${g.scope}-${g.name}` },
      icon('banned'), h('span', null, `no request ${scope({ kind: g.scope, name: g.name })} for another ${countdown(ms(g.until) - now)}: ${g.kind}`))),
    ...e.maintenance.map((/** @type {any} */ m, /** @type {number} */ i) => h('li', { key: `m-${i}` }, icon('maintenance'), h('span', null, maintenance(m, now)))),
  ];
  if (lines.length === 0) return null;
  if (e.overrides.length > 0) {
    const bad = e.circuits.filter((/** @type {any} */ c) => c.state !== 'closed');
    lines.push(h('li', { key: 'computed' }, icon(bad[0]?.state ?? 'closed'), h('span', null, 'computed beside it: ',
      bad.map((/** @type {any} */ c) => `${className(c.class, c.family)} ${circuitWord(c.state)}`).join(', ') || 'every circuit closed')));
  }
  return h('ul', { class: 'force', key: 'force' }, lines);
}

/** maintenance @param {any} m @param {number} now */
export function maintenance(m, now) {
  const from = m.from && !m.active ? ` from ${time(m.from, now)}, in ${span(ms(m.from) - now)}` : '';
  const until = m.until ? ` until ${minute(m.until)}` : m.active ? ', end unknown' : '';
  return `maintenance${from}${until}${m.announced ? ', announced by the exchange' : ', configured'}${m.note ? `: ${m.note}` : ''}`;
}

/** served @param {any} s */
function served(s) {
  const total = s.live + s.stale + s.refused;
  if (total === 0) return 'nobody asked';
  const part = (/** @type {string} */ name, /** @type {number} */ n) => h('span', { class: `part p-${name}`, key: name, vars: { width: `${(100 * n) / total}%` } });
  return [
    `${s.live} live, ${s.stale} stale, ${s.refused} refused`,
    s.oldest_ms !== null && s.stale > 0 && `; the oldest ${age(s.oldest_ms)}`,
    h('span', { class: 'parts', 'aria-hidden': 'true' }, part('live', s.live), part('stale', s.stale), part('refused', s.refused)),
  ];
}

/** streams @param {any} s @param {number} now */
function streams(s, now) {
  const parts = [`${s.live} of ${s.wanted} books live`];
  if (s.syncing) parts.push(`${s.syncing} syncing`);
  if (s.stale) parts.push(`${s.stale} stale`);
  if (s.queued) parts.push(`${s.queued} queued${s.eta_ms ? ` for ${span(s.eta_ms)}` : ''}`);
  parts.push(`${s.connections} ${s.connections === 1 ? 'connection' : 'connections'}`);
  if (s.last_frame) parts.push(`last frame ${age(now - ms(s.last_frame))} ago`);
  return parts.join(', ');
}

/** actions @param {any} e @param {any} me */
function actions(e, me) {
  if (!me.may_act) return null;
  const act = (/** @type {string} */ verb, /** @type {string} */ words, /** @type {string} */ key) => h('button', {
    type: 'button', key: verb, 'data-act': 'order', 'data-verb': verb, 'data-exchange': e.id,
  }, words, h('span', { class: 'unseen' }, ` ${e.id}`), key && h('kbd', { 'aria-hidden': 'true' }, key));
  return h('div', { class: 'actions', key: 'actions' },
    act('isolate', 'Isolate', 'i'), act('release', 'Release', 'r'), act('probe', 'Probe now', 'p'),
    act('withhold', 'Withhold', ''), act('purge', 'Purge', ''));
}
