// All tabs of a browser share this worker and with it one connection: a browser opens at most six to one host over HTTP/1.1,
// so the seventh tab that had its own would wait for ever. The worker belongs to no tab, so none has to take over from another.

import { source } from './source.js';

const GONE = 180_000; // ms without a sign of life until a tab is forgotten: a hidden one may run a timer once a minute

/** @type {Map<MessagePort, number>} */
const tabs = new Map();
/** What a new tab needs: the last snapshot, the events after it, the last state, and how the connection stands. */
const kept = { snapshot: /** @type {any} */ (null), events: /** @type {any[]} */ ([]), state: /** @type {any} */ (null), line: /** @type {any} */ (null) };
const MOST = 5000; // events after a snapshot; then a new one is asked for, which holds the last 5,000 itself

const link = source('/v1/circuits/events', (message) => {
  const m = { ...message, at: Date.now() };
  keep(m);
  for (const [port, seen] of tabs) {
    if (Date.now() - seen > GONE) tabs.delete(port);
    else port.postMessage(m);
  }
});

function keep(/** @type {any} */ m) {
  switch (m.kind) {
    case 'snapshot':
      kept.snapshot = m;
      kept.events = [];
      kept.state = null;
      break;
    case 'state':
      kept.state = m;
      break;
    case 'event':
      kept.events.push(m);
      if (kept.events.length > MOST) link.reopen();
      break;
    default:
      kept.line = m;
  }
}

/** @param {MessagePort} port */
function greet(port) {
  tabs.set(port, Date.now());
  for (const m of [kept.snapshot, ...kept.events, kept.state, kept.line]) if (m) port.postMessage({ ...m, past: true });
}

/** @type {any} */ (self).onconnect = (/** @type {MessageEvent} */ e) => {
  const port = e.ports[0];
  port.onmessage = ({ data }) => {
    if (data === 'hello') greet(port);
    if (data === 'here') tabs.set(port, Date.now());
    if (data === 'bye') tabs.delete(port);
    if (data === 'reopen') link.reopen();
  };
  port.start();
};
