// The one connection to the gateway. EventSource connects anew by itself and says which event it saw last; what it does not
// do is notice that a connection has gone quiet, or try again after an answer that was no stream.

const QUIET = 10_000; // ms. The gateway sends a state every second: after ten without any, this connection is dead
const PATIENCE = 5_000; // ms until the question why there is no stream is given up
const AGAIN = 2_000; // ms until another attempt where EventSource has given up

/**
 * A message to the tabs. A frame's data stays the text that came: each tab reads it once.
 * @typedef {{kind: 'snapshot'|'state'|'event'|'bye', data: string} | {kind: 'open'} | {kind: 'lost'} | {kind: 'denied', status: number}} Message
 */

/**
 * source keeps one connection for as long as the program runs and tells what happens on it.
 * @param {string} url
 * @param {(m: Message) => void} tell
 */
export function source(url, tell) {
  /** @type {EventSource | undefined} */
  let stream;
  let heard = Date.now();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;

  const open = () => {
    clearTimeout(again);
    stream?.close();
    heard = Date.now();
    const s = stream = new EventSource(url);
    for (const kind of /** @type {const} */ (['snapshot', 'state', 'event', 'bye'])) {
      s.addEventListener(kind, (e) => {
        heard = Date.now();
        tell({ kind, data: e.data });
      });
    }
    s.onopen = () => {
      heard = Date.now();
      tell({ kind: 'open' });
    };
    s.onerror = async () => {
      if (s !== stream) return;
      heard = Date.now(); // it tries again by itself, which may take a while
      tell({ kind: 'lost' });
      if (s.readyState !== EventSource.CLOSED) return;
      clearTimeout(again);
      again = setTimeout(open, AGAIN);
      const status = await refusal(url);
      if (s === stream && status) tell({ kind: 'denied', status });
    };
  };

  setInterval(() => {
    if (Date.now() - heard > QUIET) {
      tell({ kind: 'lost' });
      open();
    }
  }, 1000);
  open();
  return { reopen: open };
}

/** refusal asks why there is no stream: EventSource does not tell. @param {string} url @returns {Promise<number>} 401, 403 or 0 */
async function refusal(url) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE);
  try {
    const answer = await fetch(url.replace(/\/events$/, ''), { signal: stop.signal, cache: 'no-store' });
    return answer.status === 401 || answer.status === 403 ? answer.status : 0;
  } catch {
    return 0; // nobody is there: that is the ordinary case
  } finally {
    clearTimeout(timer);
    stop.abort(); // the body is of no interest
  }
}
