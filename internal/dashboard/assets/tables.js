// Tables that become a list of cards on a narrow screen. The roles are written out: a browser forgets them when a style sheet
// takes the cells out of their rows.

import { h } from './dom.js';

/**
 * table: the first cell of a row is its name.
 * @param {string} caption
 * @param {string[]} heads
 * @param {{key: string, class?: string, cells: any[]}[]} rows
 */
export function table(caption, heads, rows) {
  return h('table', { role: 'table', key: 'table' },
    h('caption', { class: 'unseen' }, caption),
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, heads.map((t) => h('th', { scope: 'col', role: 'columnheader' }, t)))),
    h('tbody', { role: 'rowgroup' }, rows.map((r) => h('tr', { key: r.key, role: 'row', class: r.class },
      r.cells.map((c, i) => (i === 0
        ? h('th', { scope: 'row', role: 'rowheader' }, c)
        : h('td', { role: 'cell', 'data-label': heads[i] }, c)))))));
}

/** bar is a number against its bounds, as a picture beside the number. @param {number} share of the whole @param {string} tone @param {number} [mark] share at which a line is drawn */
export const bar = (share, tone, mark) => h('span', { class: 'bar', 'aria-hidden': 'true' },
  h('span', { class: `fill t-${tone}`, vars: { width: `${Math.min(100, Math.max(0, share * 100)).toFixed(1)}%` } }),
  mark !== undefined && h('span', { class: 'mark', vars: { left: `${Math.min(100, mark * 100).toFixed(1)}%` } }));
