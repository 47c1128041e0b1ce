// One shape per state, so that a state is known without its colour: drawn, since a font may lack the sign.

import { h } from './dom.js';

/** @type {Record<string, any[]>} */
const SHAPES = {
  closed: [['circle', { cx: 8, cy: 8, r: 6.5 }], ['path', { d: 'M5 8.2 7.2 10.4 11 6', class: 'cut' }]],
  open: [['path', { d: 'M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z' }], ['path', { d: 'M5.5 5.5l5 5m0-5l-5 5', class: 'cut' }]],
  half_open: [['circle', { cx: 8, cy: 8, r: 6.2, class: 'line' }], ['path', { d: 'M8 1.8a6.2 6.2 0 0 1 0 12.4z' }]],
  isolated: [['rect', { x: 1.8, y: 1.8, width: 12.4, height: 12.4, rx: 1 }], ['path', { d: 'M6.2 5v6m3.6-6v6', class: 'cut' }]],
  banned: [['circle', { cx: 8, cy: 8, r: 6.2, class: 'line' }], ['path', { d: 'M3.8 12.2l8.4-8.4', class: 'line' }]],
  failing: [['path', { d: 'M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z', class: 'line' }], ['path', { d: 'M8 4.5v4.5m0 1.6v.9', class: 'line' }]],
  withheld: [['path', { d: 'M1.5 8C4 4 12 4 14.5 8 12 12 4 12 1.5 8z', class: 'line' }], ['path', { d: 'M3 13.5l10-11', class: 'line' }]],
  maintenance: [['path', { d: 'M8 1.5l6.5 6.5L8 14.5 1.5 8z', class: 'line' }], ['path', { d: 'M8 5v3.5m0 1.6v1', class: 'line' }]],
  action: [['circle', { cx: 8, cy: 4.8, r: 3.3 }], ['path', { d: 'M1.8 15c0-7.5 12.4-7.5 12.4 0z' }]],
  not_asked: [['circle', { cx: 8, cy: 8, r: 6.2, class: 'line' }]],
  failed: [['circle', { cx: 8, cy: 8, r: 6.2, class: 'line' }], ['path', { d: 'M5.5 5.5l5 5m0-5l-5 5', class: 'line' }]],
  limited: [['path', { d: 'M8 1.8 14.8 13.8H1.2z', class: 'line' }], ['path', { d: 'M8 6v4m0 1.4v.9', class: 'line' }]],
};

/** @type {Record<string, string>} */
const LEVELS = { ok: 'closed', notice: 'maintenance', degraded: 'limited', down: 'open', frozen: 'isolated' };

/** icon is decoration: its word stands beside it. @param {string} state */
export const icon = (state) => h('svg', { viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true', key: `icon-${state}` },
  (SHAPES[state] ?? SHAPES.limited).map(([tag, props]) => h(tag, props)));

/** levelIcon @param {string} level */
export const levelIcon = (level) => icon(LEVELS[level] ?? 'limited');

/** badge is a state by icon, word, hue and border. @param {string} state @param {string} [words] */
export const badge = (state, words) => h('span', { class: `badge s-${state}` }, icon(state), h('span', null, words ?? state));
