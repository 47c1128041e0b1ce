// The page: one store, fed by the stream, and parts that draw it.

import { $ } from './dom.js';
import { newStore } from './store.js';
import { stream } from './stream.js';
import { headline, line, frozen, foot } from './header.js';
import { cards, bySeverity } from './cards.js';
import { circuits } from './circuits.js';
import { books } from './books.js';
import { budgets } from './budgets.js';
import { clients } from './clients.js';
import { newTimeline } from './timeline.js';
import { newEvents } from './events.js';
import { newDrawer } from './drawer.js';
import { newOrders } from './orders.js';
import { newSession } from './session.js';
import { newAnnouncer } from './announce.js';
import { keys } from './keys.js';
import { copy } from './copy.js';

const TICK = 250; // ms between two looks at whether the data still comes
const ME = 60_000; // ms between two looks at who acts: a session may end elsewhere

const store = newStore();
const timeline = newTimeline();
const events = newEvents();
const announcer = newAnnouncer();
const link = stream(take);
const session = newSession(draw, () => link.reopen());
const drawer = newDrawer(session.me);
const orders = newOrders(store, session.me, toast);
const keyboard = keys({ order, exchanges: () => bySeverity(store.overview?.exchanges ?? []).map((/** @type {any} */ e) => e.id) });

if (new URLSearchParams(location.search).has('kiosk')) document.documentElement.classList.add('kiosk');

/** @type {ReturnType<typeof setTimeout> | undefined} */
let due;
/** @param {any} m */
function take(m) {
  const fresh = store.take(m);
  if (!m.past) announcer.events(fresh);
  // Several messages that come together are one drawing.
  due ??= setTimeout(() => {
    due = undefined;
    draw();
  }, 0);
}

let boot = '', shown = '';
/** top is what goes on when no frame comes: how old all of it is. */
function top() {
  shown = store.line;
  headline(store);
  line(store);
  frozen(store);
  announcer.connection(store.line);
}

function draw() {
  top();
  session.who();
  if (!store.overview || document.hidden) return; // the title and the icon of a hidden tab are all of it that is seen
  cards(store, session.me);
  timeline.draw(store);
  circuits(store);
  books(store);
  budgets(store);
  clients(store);
  events.draw(store);
  drawer.draw(store);
  orders.draw();
  foot(store);
  if (boot !== store.overview.boot) {
    boot = store.overview.boot;
    void session.refresh(); // another process may know other keys
  }
}

/** @param {string} verb @param {string} exchange @param {{symbol?: string}} [preset] */
function order(verb, exchange, preset) {
  if (session.me.may_act) orders.open(verb, exchange, preset);
  else toast(`Read-only: ${session.me.why}`);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let fading;
/** @param {string} words */
function toast(words) {
  const el = $('toast');
  el.hidden = false;
  el.textContent = words;
  clearTimeout(fading);
  fading = setTimeout(() => { el.hidden = true; }, 20_000);
}

/** Every button says with data-act what it is for. @type {Record<string, (el: HTMLElement) => void>} */
const acts = {
  order: (el) => order(el.dataset.verb ?? '', el.dataset.exchange ?? '', { symbol: el.dataset.symbol }),
  drawer: (el) => drawer.open(el.dataset.key ?? '', store),
  span: (el) => { timeline.choose(Number(el.dataset.hours)); draw(); },
  'more-events': () => { events.more(); draw(); },
  'copy-events': () => void copied(events.json(store)),
  copy: (el) => void copied(el.dataset.text ?? ''),
  login: () => session.login(),
  logout: () => void session.logout(),
  help: () => keyboard.help(),
  close: (el) => el.closest('dialog')?.close(),
};

/** @param {string} text */
async function copied(text) {
  toast(await copy(text) ? 'Copied.' : 'This browser did not permit it: select the text and copy it by hand.');
}

document.addEventListener('click', (e) => {
  const el = e.target instanceof Element && e.target.closest('[data-act]');
  if (el instanceof HTMLElement) acts[el.dataset.act ?? '']?.(el);
});
for (const id of ['books-filter', 'events-filter']) $(id).addEventListener('input', draw);
addEventListener('hashchange', draw);
document.addEventListener('visibilitychange', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);

setInterval(() => {
  if (store.line !== shown) draw();
  else if (shown !== 'live') top(); // a frame draws the page; without one nothing but the count goes on
}, TICK);
setInterval(() => void session.refresh(), ME);
void session.refresh();
draw();
