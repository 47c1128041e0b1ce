// Who asks most of the gateway, and what it costs at the exchanges: to find the client that is too many.

import { h, patch, $ } from './dom.js';
import { badge } from './icons.js';
import { table } from './tables.js';

/** clients @param {any} store */
export function clients(store) {
  const all = store.overview.clients;
  patch($('clients'), all.length
    ? table('Clients that did most in the last minute',
      ['Client', 'Units of exchanges’ limits', 'Requests', 'Refused for its quota or share', 'In flight', 'Streams'], all.map(row))
    : h('p', { class: 'quiet', key: 'none' }, 'No client did anything in the last minute.'));
}

/** named is what a person reads for a client. All callers without a key are one. @param {string} name */
const named = (name) => (name === 'keyless' ? 'without a key' : name);

/** @param {any} c */
function row(c) {
  const number = (/** @type {number} */ n) => h('span', { class: 'num' }, String(n));
  return {
    key: c.client,
    cells: [
      named(c.client), number(c.upstream_units), number(c.requests), c.refused > 0 ? badge('limited', String(c.refused)) : number(0),
      number(c.in_flight), number(c.streams),
    ],
  };
}
