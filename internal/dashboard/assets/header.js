// The top of the page: the worst state in words, and whether any of it may be believed. The same words are the title and the
// icon of the tab.

import { h, patch, $ } from './dom.js';
import { levelIcon } from './icons.js';
import { span, countdown, time, exact, zone } from './time.js';

const SKEW = 2_000; // ms between two clocks that a person should know of

/** headline @param {any} store */
export function headline(store) {
  const o = store.overview, line = store.line;
  // Only what is live may be claimed: not the words, nor the icon, nor the colour.
  const level = line === 'live' ? o.level : 'frozen';
  let words = o?.headline ?? 'connecting to the gateway';
  if (o && line !== 'live') words = `Not current: ${words}`;
  if (line === 'denied') words = 'not logged in: the state is not shown';
  document.title = line === 'frozen' ? `FROZEN at ${time(store.heard)}: ${o.headline}` : words;
  const icon = /** @type {HTMLLinkElement} */ ($('favicon'));
  const href = new URL(`./level-${level}.svg`, import.meta.url).pathname;
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href);
  document.documentElement.dataset.level = level;
  document.documentElement.dataset.line = line;
  patch($('headline'), [levelIcon(level), h('h1', null, words)]);
}

/** @type {Record<string, string>} */
const LINES = { connecting: 'connecting', live: 'live', late: 'nothing comes', reconnecting: 'reconnecting', frozen: 'no data', denied: 'refused' };

/** line @param {any} store */
export function line(store) {
  const o = store.overview;
  const skew = Math.abs(store.behind) >= SKEW && store.line === 'live'
    ? `This computer's clock is ${span(Math.abs(store.behind))} ${store.behind > 0 ? 'behind' : 'ahead of'} the gateway's.` : null;
  patch($('line'), [
    h('span', { class: `stream l-${store.line}` }, LINES[store.line], store.stopping && ': the gateway is stopping'),
    o && h('span', { title: exact(o.now) }, time(store.now), ' ', zone()),
    o && h('span', null, o.instance),
    skew && h('span', { class: 'warn' }, skew),
    ...(o?.degraded ?? []).map((/** @type {string} */ d) => h('span', { class: 'warn', key: d }, `The gateway itself: ${d}`)),
  ]);
}

/** frozen says it over the whole page. @param {any} store */
export function frozen(store) {
  const el = $('frozen');
  const still = store.line === 'frozen' || store.line === 'denied';
  el.hidden = !still;
  document.body.classList.toggle('stale', still);
  if (!still) return;
  if (store.line === 'denied') {
    patch(el, ['The gateway wants to know who is asking. ', h('button', { type: 'button', 'data-act': 'login' }, 'Log in with an ops key')]);
    return;
  }
  patch(el, [
    h('strong', null, `Data frozen at ${time(store.heard)}`),
    // What is read out once is enough: the count goes on for the eye only.
    h('span', { 'aria-hidden': 'true' }, `, for ${span(store.frozenFor)}`),
    `. ${store.stopping ? 'The gateway was stopped' : 'The gateway does not answer'}; nothing below is known to be true any more. The page goes on by itself when it answers.`,
  ]);
}

/** foot @param {any} store */
export function foot(store) {
  const o = store.overview;
  if (!o) return;
  patch($('foot'), [
    h('span', null, `Exchange gateway ${o.version}, up ${countdown(Date.parse(o.now) - Date.parse(o.started_at))}`),
    h('a', { href: '/ui/plain' }, 'Plain page'),
    h('a', { href: '/v1/circuits' }, 'The same as JSON'),
    h('a', { href: '/ui/runbooks/' }, 'Runbooks'),
  ]);
}
