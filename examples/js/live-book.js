// Shows one book as it changes. What is old is said in words, never by colour alone.
import { Gateway } from '../../clients/js/exchange-gateway.js';

const REDRAW = 250; // ms: an age that stands still would look like a page that does

const asked = new URLSearchParams(location.search);
const exchange = asked.get('exchange') ?? 'okx', symbol = asked.get('symbol') ?? 'BTC/USDT', depth = Number(asked.get('depth') ?? 5);
const gateway = new Gateway(asked.get('gateway') ?? location.origin);

const at = (id) => document.getElementById(id);

/** The words of the state change with it alone, so that a screen reader is not told the age four times a second. */
function say(state, words) {
  at('status').parentElement.dataset.state = state;
  if (at('status').textContent !== words) at('status').textContent = words;
}

function sayFreshness({ stale, freshness }) {
  say(stale ? 'stale' : 'live', stale ? `Stale (${freshness.reason}): do not trade on it.` : 'Live.');
  at('age').textContent = freshness.ageMs === null ? 'Never confirmed.' : `Confirmed ${(freshness.ageMs / 1000).toFixed(1)} s ago.`;
}

function draw(book) {
  const rows = Array.from({ length: Math.max(book.bids.length, book.asks.length) }, (_, i) => {
    const row = document.createElement('tr');
    const [bid = ['', ''], ask = ['', '']] = [book.bids[i], book.asks[i]];
    for (const cell of [bid[1], bid[0], ask[0], ask[1]]) row.insertCell().textContent = cell;
    return row;
  });
  at('book').tBodies[0].replaceChildren(...rows);
  at('book').toggleAttribute('data-old', book.stale);
  at('mid').textContent = book.mid ?? '-';
  at('spread').textContent = book.spread ?? '-';
}

at('title').textContent = document.title = `${symbol} at ${exchange}`;
try {
  let drawn;
  for await (const book of gateway.watchOrderBook(exchange, symbol, { depth, everyMs: REDRAW })) {
    sayFreshness(book);
    const version = `${book.epoch}-${book.seq}-${book.stale}`;
    if (version !== drawn) draw(book);
    drawn = version;
  }
} catch (err) {
  say('error', err.message); // nothing that trying again could help
  at('age').textContent = '';
}
