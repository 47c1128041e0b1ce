// A tab's end of the connection: through the worker that all tabs share; where a browser has none (Chrome on phones until
// lately), the tab connects itself.

import { source } from './source.js';

/**
 * stream tells what comes, each message with `at`, the moment when it came to this computer, and with `past` if that was
 * before this tab was there.
 * @param {(m: any) => void} tell
 * @returns {{reopen: () => void}}
 */
export function stream(tell) {
  if (!('SharedWorker' in globalThis)) {
    const link = source('/v1/circuits/events', (m) => tell({ ...m, at: Date.now() }));
    return link;
  }
  const worker = new SharedWorker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'exchange-gateway' });
  const port = worker.port;
  port.onmessage = ({ data }) => tell(data);
  port.start();
  port.postMessage('hello');
  setInterval(() => port.postMessage('here'), 30_000);
  addEventListener('pagehide', () => port.postMessage('bye'));
  addEventListener('pageshow', (e) => { if (e.persisted) port.postMessage('hello'); });
  return { reopen: () => port.postMessage('reopen') };
}
