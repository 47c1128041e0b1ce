// One circuit or one book in full: the settings in force, the counts, what went wrong lately, and a line to ask the same from
// a shell.

import { h, patch, $ } from './dom.js';
import { badge } from './icons.js';
import { circuitKey, worst } from './circuits.js';
import { bookKey, ageNow } from './books.js';
import { table } from './tables.js';
import { circuitWord, className, percent } from './words.js';
import { span, age, countdown, time, exact, ms } from './time.js';

/** meta @param {string} name */
const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? '';

/** newDrawer @param {any} me who acts */
export function newDrawer(me) {
  let key = '';
  const dialog = /** @type {HTMLDialogElement} */ ($('drawer'));
  dialog.addEventListener('close', () => { key = ''; });
  return {
    /** @param {string} what @param {any} store */
    open(what, store) {
      key = what;
      this.draw(store);
      if (!dialog.open) dialog.showModal();
    },
    /** @param {any} store */
    draw(store) {
      if (!key) return;
      const [kind, name] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)];
      patch(dialog, [
        h('form', { method: 'dialog', key: 'close', class: 'closing' }, h('button', null, 'Close ', h('kbd', null, 'Esc'))),
        ...(kind === 'book' ? book(name, store, me) : circuit(name, store)),
      ]);
    },
  };
}

/** rows of facts @param {[string, any][]} all */
const facts = (all) => h('dl', { class: 'facts wide' }, all.filter(([, v]) => v !== null && v !== undefined).map(([k, v]) => h('div', { key: k }, h('dt', null, k), h('dd', null, v))));

/** @param {string} name @param {any} store */
function circuit(name, store) {
  for (const e of store.overview.exchanges) {
    const c = e.circuits.find((/** @type {any} */ c) => circuitKey(e.id, c) === name);
    if (c) return circuitParts(e, c, store.now);
  }
  return [h('h2', { id: 'drawer-title' }, name), h('p', null, 'There is no such circuit any more.')];
}

/** @param {any} e @param {any} c @param {number} now */
function circuitParts(e, c, now) {
  const t = c.thresholds;
  const milli = (/** @type {number} */ n) => age(n);
  return [
    h('h2', { id: 'drawer-title' }, `${e.id} ${className(c.class, c.family)}`),
    h('p', null, badge(c.state, `computed: ${circuitWord(c.state)}`), ' ', c.isolated && badge('isolated', 'override: isolated')),
    facts([
      ['Since', h('span', { title: exact(c.since) }, `${time(c.since, now)}, for ${span(now - ms(c.since))}`)],
      ['Last change', c.cause_text || 'none'],
      ['Next probe', c.probe_due ? 'with the next call' : c.open_until && `in ${countdown(ms(c.open_until) - now)}`],
      ['Opened since it was last healthy', `${c.trips} times`],
      ['In the window', `${c.window.failures} of ${c.window.settled} failed, ${c.window.slow} slow, ${c.window.consecutive} in a row`],
      ['Worst of 24 h', `${worst(c)}; since ${time(c.worst.since, now)}`],
      ['Last good answer of the exchange', e.last_success && `${span(now - ms(e.last_success))} ago`],
    ]),
    h('h3', null, 'Settings in force'),
    facts([
      ['Opens after', `${t.consecutive} failures in a row over at least ${milli(t.min_span_ms)}`],
      ['or at', `${percent(t.rate)} failed of at least ${t.min_settled} calls in ${span(t.window_ms)}`],
      ['or, for slowness, at', `${percent(t.slow_share)} slower than ${milli(t.slow_ms)}`],
      ['An attempt may take', milli(t.timeout_ms)],
      ['A call with its retries may take', milli(t.deadline_ms)],
      ['Open for', `${milli(t.open_min_ms)}, doubling to ${milli(t.open_max_ms)}`],
    ]),
    h('h3', null, 'Last attempts that went wrong'),
    e.failures.length === 0 ? h('p', { class: 'quiet' }, 'None.') : table('Failed attempts', ['When', 'Operation', 'Kind', 'Status', 'Code', 'Took'],
      e.failures.map((/** @type {any} */ f, /** @type {number} */ i) => ({
        key: String(i), cells: [time(f.at, now), f.op, f.kind, f.status || 'no answer', f.code || 'none', age(f.elapsed_ms)],
      }))),
    h('h3', null, 'From a shell'),
    shell(`curl -s '${location.origin}/v1/circuits'`),
    runbook('GatewayCircuitOpen'),
  ];
}

/** @param {string} name @param {any} store @param {any} me */
function book(name, store, me) {
  const b = store.overview.books.find((/** @type {any} */ b) => bookKey(b) === name);
  if (!b) return [h('h2', { id: 'drawer-title' }, name), h('p', null, 'This book was not answered in the last ten minutes, and is not streamed.')];
  const now = store.now, old = ageNow(b, store);
  const moment = (/** @type {string|null} */ t) => (t ? h('span', { title: exact(t) }, `${time(t, now)}, ${age(now - ms(t))} ago`) : null);
  return [
    h('h2', { id: 'drawer-title' }, `${b.exchange} ${b.symbol}`),
    facts([
      ['Status', b.reason ? `${b.status}: ${b.reason}` : b.status],
      ['Age', old === null ? 'nothing held' : `${age(old)}; live up to ${age(b.fresh_for_ms)}, refused beyond ${age(b.stale_max_ms)}`],
      ['Source of the last answer', b.source || 'none'],
      ['Confirmed by the exchange', moment(b.confirmed_at)],
      ['Last change of a level', moment(b.changed_at)],
      ['Last answered', moment(b.served_at)],
      ['Best bid, best ask', `${b.bid ?? 'none'}, ${b.ask ?? 'none'}`],
      ['Spread', b.spread ?? 'none'],
      ['Sequence of the exchange', b.sequence === null ? 'none' : String(b.sequence)],
    ]),
    me.may_act && h('div', { class: 'actions' }, [['withhold', 'Withhold this book'], ['purge', 'Purge this book']].map(([verb, words]) => h('button', {
      type: 'button', key: verb, 'data-act': 'order', 'data-verb': verb, 'data-exchange': b.exchange, 'data-symbol': b.symbol,
    }, words))),
    h('h3', null, 'Stream'),
    b.streamed ? facts([
      ['Streamed since', moment(b.streamed_since)],
      ['Epoch', b.epoch || 'none'],
      ['Started anew', `${b.resyncs} times`],
      ['Last time', moment(b.last_resync)],
      ['because of', b.resync_reason || null],
    ]) : h('p', { class: 'quiet' }, 'Not streamed.'),
    h('h3', null, 'From a shell'),
    shell(`curl -s '${meta('public-url') || 'http://GATEWAY'}/v1/exchanges/${b.exchange}/orderbook?symbol=${b.symbol}&depth=5'`),
    runbook('GatewayServingStaleBooks'),
  ];
}

/** shell is a line to paste. @param {string} text */
const shell = (text) => h('p', { class: 'shell' }, h('code', null, text), h('button', { type: 'button', 'data-act': 'copy', 'data-text': text }, 'Copy'));

/** runbook leads to what to do: the gateway has the texts itself. @param {string} name */
const runbook = (name) => h('p', null, 'What to do: ', h('a', { href: `${meta('runbooks')}${name}.md`, target: '_blank', rel: 'noreferrer' }, name), ', or ',
  h('a', { href: meta('runbooks'), target: '_blank', rel: 'noreferrer' }, 'another runbook'), '.');
