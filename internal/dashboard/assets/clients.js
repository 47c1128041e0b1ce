// Who asks most of the gateway, and what it costs at the exchanges: to find the client that is too many.

import { h, patch, $ } from './dom.js';
import { badge } from './icons.js';
import { table } from './tables.js';

/** clients @param {any} store */
export function clients(store) {
  const all = store.overview.clients;
  patch($('clients'), all.length
    ? table('Clients with a key that did most in the last minute',
      ['Client', 'Units of exchanges’ limits', 'Requests', 'Refused by its quota', 'In flight', 'Streams'], all.map(row))
    : h('p', { class: 'quiet', key: 'none' }, 'No client with a key did anything in the last minute.'));
}

/** @param {any} c */
function row(c) {
  const number = (/** @type {number} */ n) => h('span', { class: 'num' }, String(n));
  return {
    key: c.client,
    cells: [
      c.client, number(c.upstream_units), number(c.requests), c.refused > 0 ? badge('limited', String(c.refused)) : number(0),
      number(c.in_flight), number(c.streams),
    ],
  };
}
