// The keyboard. A key opens, shows or moves; what changes anything waits for a reason and a confirmation.

import { h, patch, $ } from './dom.js';

const OFF = 'gateway.keys.off'; // in this browser's storage: a person who dictates needs single keys switched off

/** @type {[string, string][]} */
const HELP = [
  ['1 to 9', 'go to an exchange'], ['i', 'isolate it: no request is sent to it'], ['r', 'release it'], ['p', 'probe now'],
  ['t', 'go to the timeline'], ['e', 'go to events and audit'], ['/', 'filter the books'], ['?', 'this help'], ['Esc', 'close, or leave a filter'],
];

/**
 * keys listens. act is told what a key means; where is the exchange that it means it for.
 * @param {{order: (verb: string, exchange: string) => void, exchanges: () => string[]}} act
 */
export function keys(act) {
  const dialog = /** @type {HTMLDialogElement} */ ($('help'));
  let last = '';

  document.addEventListener('focusin', (e) => {
    const card = e.target instanceof Element && e.target.closest('[data-exchange]');
    if (card) last = card.getAttribute('data-exchange') ?? last;
  });
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.repeat) return;
    const el = e.target instanceof HTMLElement ? e.target : document.body;
    if (el.matches('input, select, textarea')) {
      if (e.key === 'Escape' && el.matches('[type="search"]')) el.blur();
      return;
    }
    if (document.querySelector('dialog[open]') || localStorage.getItem(OFF) === '1') return;
    if (run(e.key)) e.preventDefault();
  });

  /** @param {string} key @returns {boolean} whether it meant something */
  function run(key) {
    const ids = act.exchanges();
    if (/^[1-9]$/.test(key)) {
      const id = ids[Number(key) - 1];
      if (id) go(`x-${id}`);
      return Boolean(id);
    }
    switch (key) {
      case 'i': case 'r': case 'p': {
        const id = ids.includes(last) ? last : ids.length === 1 ? ids[0] : '';
        if (id) act.order(/** @type {Record<string, string>} */ ({ i: 'isolate', r: 'release', p: 'probe' })[key], id);
        else go('exchanges');
        return true;
      }
      case 't': go('timeline'); return true;
      case 'e': go('events'); return true;
      case '/': $('books-filter').focus(); return true;
      case '?': help(); return true;
    }
    return false;
  }

  function help() {
    patch(dialog, [
      h('h2', { id: 'help-title' }, 'Keys'),
      h('dl', { class: 'keys' }, HELP.map(([k, words]) => h('div', { key: k }, h('dt', null, h('kbd', null, k)), h('dd', null, words)))),
      h('p', { class: 'quiet' }, 'i, r and p are about the exchange that was last gone to. Nothing is done before a reason is given and confirmed.'),
      h('label', { class: 'radio' }, h('input', { type: 'checkbox', 'data-act': 'keys-off', checked: localStorage.getItem(OFF) === '1' }), h('span', null, 'Switch single keys off in this browser')),
      h('form', { method: 'dialog', class: 'buttons' }, h('button', { class: 'main', autofocus: true }, 'Close')),
    ]);
    if (!dialog.open) dialog.showModal();
  }
  dialog.addEventListener('change', (e) => {
    if (e.target instanceof HTMLInputElement) localStorage.setItem(OFF, e.target.checked ? '1' : '0');
  });
  return { help };
}

/** go moves the focus, and the page with it. @param {string} id */
function go(id) {
  const el = /** @type {HTMLElement} */ ($(id));
  el.focus({ preventScroll: true });
  el.scrollIntoView({ block: 'nearest', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
}
