// The dialog of an order: what, for how long, why, and before it is sent, what clients will see.

import { h, patch, $ } from './dom.js';
import { className, stateWord } from './words.js';
import { inForce, shortened } from './inforce.js';
import { minute, time, next } from './time.js';
import { post } from './post.js';

const MINUTE = 60_000;
const DURATIONS = [[15, '15 min'], [45, '45 min'], [60, '1 h'], [240, '4 h']];

/** @type {Record<string, {title: string, timed?: boolean, classes?: boolean, symbol?: 'may' | 'must'}>} */
const VERBS = {
  isolate: { title: 'Isolate', timed: true, classes: true },
  release: { title: 'Release', classes: true, symbol: 'may' },
  probe: { title: 'Probe now', classes: true },
  withhold: { title: 'Withhold', timed: true, symbol: 'may' },
  purge: { title: 'Purge a book', symbol: 'must' },
};

/** consequence is what clients will see. @param {string} verb @param {string} exchange @param {string} cls @param {string} symbol */
function consequence(verb, exchange, cls, symbol) {
  const reads = symbol ? `Reads of ${symbol} at ${exchange}` : `Reads of ${exchange}`;
  switch (verb) {
    case 'isolate':
      return /** @type {Record<string, string>} */ ({
        '': `No request goes to ${exchange}: no probe, no stream. Clients get its books stale, labelled with their true age, as long as their bound allows; balances are refused.`,
        market_data: `No book is asked for at ${exchange}. Clients get its books from streams where there are some, otherwise stale, labelled with their true age.`,
        reference: `Listings and statistics of ${exchange} are answered from what is known, labelled stale.`,
        account: `Balances at ${exchange} are refused. Books are not touched.`,
        stream: `Every stream of ${exchange} is closed. Clients get its books by requests, or stale.`,
      })[cls] ?? `No request of ${className(cls)} goes to ${exchange}.`;
    case 'release':
      return `What an operator put in force ${symbol ? `on ${symbol} at ${exchange}` : `on ${exchange}`} ends. Clients get what the circuits permit: live answers if they are closed.`;
    case 'probe':
      return `The open circuits of ${exchange} ask once, now. If it answers, clients get live answers again; if not, they stay open. Refused during a ban or an isolation.`;
    case 'withhold':
      return `${reads} answer 503 withheld: neither live nor stale. ${exchange} is asked as before.`;
    case 'purge':
      return `Every copy of the book ${symbol || 'named above'} is dropped, in memory and in Redis. Until ${exchange} answers again, clients get an error in place of the old book.`;
  }
  return '';
}

/** newOrders @param {any} store @param {any} me @param {(words: string) => void} toast */
export function newOrders(store, me, toast) {
  const dialog = /** @type {HTMLDialogElement} */ ($('order'));
  const form = /** @type {HTMLFormElement} */ (dialog.querySelector('form'));
  let verb = '', exchange = '', busy = false, name = '', suggested = '';
  /** @type {{detail: string, parameter?: string} | undefined} */
  let problem;

  const value = (/** @type {string} */ field) => String(new FormData(form).get(field) ?? '').trim();
  /** until is when it ends, in ms. */
  const until = () => {
    const d = value('for');
    if (d !== 'until') return store.now + Number(d || 60) * MINUTE;
    return value('until') ? next(value('until'), store.now) : NaN;
  };

  /** order is what is asked for as the form stands. */
  const order = () => ({ verb, class: VERBS[verb].classes ? value('class') : '', symbol: VERBS[verb].symbol ? value('symbol').toUpperCase() : '' });
  /** @returns {any[]} */
  const overrides = () => store.overview.exchanges.find((/** @type {any} */ e) => e.id === exchange)?.overrides ?? [];
  const cut = () => (VERBS[verb].timed ? shortened(order(), overrides(), until()) : undefined);

  const draw = () => {
    const v = VERBS[verb];
    const classes = [...new Set(store.overview.exchanges.find((/** @type {any} */ e) => e.id === exchange)?.circuits.map((/** @type {any} */ c) => c.class) ?? [])];
    const e = store.overview.exchanges.find((/** @type {any} */ e) => e.id === exchange);
    const end = v.timed ? until() : 0;
    const less = cut();
    patch(form, [
      h('h2', { id: 'order-title' }, `${v.title}: ${exchange}`),
      h('p', { class: 'quiet' }, `${exchange} is ${stateWord(e?.state ?? 'unknown')} now.`),
      v.classes && field('class', 'Circuits', h('select', { id: 'order-class', name: 'class' },
        h('option', { value: '', key: '' }, 'all of them'), classes.map((/** @type {any} */ c) => h('option', { value: c, key: c }, className(c))))),
      v.symbol && field('symbol', v.symbol === 'must' ? 'Symbol' : 'Symbol, or nothing for the whole exchange',
        h('input', { id: 'order-symbol', name: 'symbol', autocomplete: 'off', spellcheck: 'false', placeholder: 'BTC/USDT', list: 'order-symbols', 'aria-describedby': 'order-problem' }),
        h('datalist', { id: 'order-symbols' }, store.overview.books.filter((/** @type {any} */ b) => b.exchange === exchange).slice(0, 50).map((/** @type {any} */ b) => h('option', { value: b.symbol, key: b.symbol })))),
      v.timed && h('fieldset', { key: 'for' }, h('legend', null, 'Ends by itself'),
        DURATIONS.map(([n, words]) => h('label', { class: 'radio', key: n }, h('input', { type: 'radio', name: 'for', value: n, checked: n === 60 }), h('span', null, `after ${words}`))),
        h('label', { class: 'radio', key: 'until' }, h('input', { type: 'radio', name: 'for', value: 'until' }), h('span', null, 'at'),
          h('input', { type: 'time', name: 'until', id: 'order-until', 'aria-label': 'ends at', value: suggested }))),
      force(order(), overrides(), store),
      less && consent(less, `${value('for')} ${value('until')}`),
      field('reason', 'Reason, for the audit', h('input', { id: 'order-reason', name: 'reason', maxlength: 200, autocomplete: 'off', required: true, 'aria-describedby': 'order-problem' })),
      me.needs_name && field('actor', 'Your name', h('input', { id: 'order-actor', name: 'actor', maxlength: 40, autocomplete: 'off', required: true, value: name, 'aria-describedby': 'order-problem' })),
      h('p', { class: 'consequence', key: 'consequence' }, h('b', null, 'Clients: '), consequence(verb, exchange, value('class'), value('symbol')),
        v.timed && (Number.isNaN(end) ? ' Say until when.' : ` It ends by itself at ${time(end, store.now)}.`)),
      h('p', { id: 'order-problem', class: 'problem', role: 'alert', key: 'problem' }, problem?.detail ?? ''),
      h('div', { class: 'buttons', key: 'buttons' },
        h('button', { type: 'submit', class: 'main', disabled: busy }, busy ? 'Waiting for the gateway' : `${v.title} ${exchange}`),
        h('button', { type: 'button', 'data-act': 'close' }, 'Cancel')),
    ]);
  };

  /** fail shows a problem where it is. @param {string} detail @param {string} [parameter] */
  const fail = (detail, parameter) => {
    problem = { detail, parameter };
    draw();
    const at = parameter && form.querySelector(`[name="${parameter}"]`);
    if (at instanceof HTMLElement) at.focus();
  };

  const send = async () => {
    const v = VERBS[verb];
    if (!value('reason')) return fail('Say why: it stands in the audit, and the next person reads it.', 'reason');
    if (me.needs_name && !value('actor')) return fail('Say who you are: no key tells the gateway.', 'actor');
    if (v.symbol === 'must' && !value('symbol')) return fail('Which book is it? Such as BTC/USDT.', 'symbol');
    const less = cut();
    if (less && !value('earlier')) return fail(`It would end ${less.by} earlier than ${less.override.actor}'s. If you mean that, tick it.`, 'earlier');
    /** @type {Record<string, any>} */
    const body = { exchange, reason: value('reason') };
    const { class: cls, symbol } = order();
    if (cls) body.class = cls;
    if (symbol) body.symbol = symbol;
    if (v.timed) {
      const end = until();
      if (Number.isNaN(end)) return fail('Until when?', 'until');
      if (value('for') === 'until') body.until = new Date(end).toISOString();
      else body.for = `${value('for')}m`;
    }
    if (me.needs_name) body.actor = name = value('actor');
    busy = true;
    problem = undefined;
    draw();
    const { outcome, problem: refused } = await post(`/admin/v1/${verb}`, body);
    busy = false;
    if (refused) return fail(refused.detail, refused.parameter);
    dialog.close();
    toast(said(outcome));
  };

  dialog.addEventListener('submit', (e) => {
    e.preventDefault();
    if (!busy) void send();
  });
  form.addEventListener('input', (e) => {
    // Who types a time means it.
    if (e.target instanceof HTMLInputElement && e.target.name === 'until') {
      const radio = form.querySelector('input[name="for"][value="until"]');
      if (radio instanceof HTMLInputElement) radio.checked = true;
    }
    draw();
  });

  return {
    /** draw keeps an open dialog true: others act while somebody thinks. */
    draw() {
      if (dialog.open) draw();
    },
    /** @param {string} what @param {string} where @param {{symbol?: string}} [preset] */
    open(what, where, preset) {
      if (!VERBS[what] || !store.overview || dialog.open) return;
      verb = what;
      exchange = where;
      problem = undefined;
      suggested = minute(store.now + 60 * MINUTE); // stands still: a time that somebody looks at and leaves is meant
      patch(form, []); // what was typed for another order is not this one's
      draw();
      if (preset?.symbol) /** @type {HTMLInputElement} */ ($('order-symbol')).value = preset.symbol;
      dialog.showModal();
      draw(); // with the symbol, what clients will see is another sentence
      /** @type {HTMLElement} */ ($(VERBS[what].symbol === 'must' && !preset?.symbol ? 'order-symbol' : 'order-reason')).focus();
    },
  };
}

/** field @param {string} key @param {string} label @param {...any} inner */
const field = (key, label, ...inner) => h('div', { class: 'field', key: `field-${key}` }, h('label', { for: `order-${key}` }, label), inner);

/** force is what is in force at this moment. It is read out when it changes. @param {any} order @param {any[]} overrides @param {any} store */
function force(order, overrides, store) {
  const lines = inForce(order, overrides, store.now);
  const known = store.line === 'live' ? 'In force: ' : `In force at ${time(store.heard)}, and not known since: `;
  return h('div', { class: 'inforce', key: 'force', role: 'status' },
    lines.length < 2 ? h('p', { key: 'one' }, h('b', null, known), lines[0] ?? 'nothing.')
      : [h('p', { key: 'head' }, h('b', null, known)), h('ul', { key: 'all' }, lines.map((l) => h('li', null, l)))]);
}

/** consent asks whether an end before somebody else's is meant. Another override or another end is another question, with a tick of its own. @param {{override: any, by: string}} less @param {string} end */
const consent = (less, end) => h('label', { class: 'radio consent', key: `earlier ${less.override.actor} ${less.override.until} ${end}` },
  h('input', { type: 'checkbox', name: 'earlier', value: 'yes', 'aria-describedby': 'order-problem' }),
  h('span', null, `It ends ${less.by} earlier than ${less.override.actor}'s, and I mean that.`));

/** said is the outcome in words. What it replaced is a part of what the gateway says about clients. @param {any} o */
function said(o) {
  const parts = [];
  if (o.changed === false) parts.push('It was so already.');
  if (o.result) parts.push(`It said: ${o.result}.`);
  if (o.removed) parts.push(o.removed.length ? `Dropped from ${o.removed.join(', ')}.` : 'There was no copy.');
  parts.push(o.clients);
  if (o.until) parts.push(`Ends by itself at ${minute(o.until)}.`);
  parts.push(o.recorded?.length ? `Survives a restart (${o.recorded.join(', ')}).` : 'It does not survive a restart: it could not be written down.');
  return parts.filter(Boolean).join(' ');
}
