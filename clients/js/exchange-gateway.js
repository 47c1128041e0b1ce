// A client of the exchange gateway: one file, no dependency, for Node 20 or later and for browsers.
//
//   import { Gateway, BookTooStale } from './exchange-gateway.js';
//
//   const gw = new Gateway('http://127.0.0.1:8080', { key: 'gw_...' });     // the key is needed for balances only, on loopback
//   const book = await gw.orderBook('okx', 'BTC/USDT', { depth: 5, maxAgeMs: 2000 });
//   console.log(book.bids[0], book.stale, book.freshness.ageMs);            // the age goes on after the answer came
//
//   for await (const book of gw.watchOrderBook('okx', 'BTC/USDT', { depth: 5 })) {
//     console.log(book.stale, book.freshness.reason, book.bids[0], book.asks[0]);
//   }
//
// Answers are the gateway's documents, by the names that the README has. Prices, sizes and amounts stay strings with the
// exchange's digits: a Number has 53 bits, and 0.1 is none of them. Durations are milliseconds. Types: exchange-gateway.d.ts.

export const VERSION = '1.0.0';

const MAX_BODY = 64 * 2 ** 20; // bytes; every pair of an exchange is some MB
const MAX_EVENT = 4 * 2 ** 20; // characters; a snapshot of 400 levels a side is under 100 KB
const MAX_NUMBER = 512; // characters of one number, far above any exchange's
const MAX_BACKOFF = 30_000; // ms
const MAX_TIMER = 2 ** 31 - 1; // ms, of setTimeout
const MAX_LATE = 250; // ms by which a message may be later than the quickest of its connection before that counts as age
const MAX_TURNS = 8; // of the event loop, for what has arrived to be read before a book is handed out; two are enough unless more comes

// ---------------------------------------------------------------------------------------------------------------------
// Errors.

/** An answer that is a problem (RFC 9457), or none at all. Everything that the client throws by itself is one of these. */
export class GatewayError extends Error {
  /** @param {string} detail @param {Record<string, any>} [problem] @param {{code?: string, status?: number, retryable?: boolean, retryAfterMs?: number, cause?: unknown}} [more] */
  constructor(detail, problem = {}, more = {}) {
    super('', more.cause === undefined ? undefined : { cause: more.cause });
    this.name = new.target.name;
    this.detail = detail;
    this.code = text(problem.code) ?? more.code ?? '';
    this.status = more.status ?? null;
    this.ccxtClass = text(problem.ccxt_class) ?? CODES[this.code]?.[1] ?? 'BaseError';
    this.origin = text(problem.origin) ?? null;
    this.exchange = text(problem.exchange) ?? null;
    this.retryable = more.retryable ?? problem.retryable === true;
    this.retryAfterMs = more.retryAfterMs ?? count(problem.retry_after_ms) ?? null;
    this.circuit = text(problem.circuit) ?? null;
    this.reason = text(problem.reason) ?? null;
    this.ageMs = count(problem.age_ms) ?? null;
    this.requestId = text(problem.request_id) ?? null;
    this.parameter = text(problem.parameter) ?? null;
    this.allowed = Array.isArray(problem.allowed) ? problem.allowed.filter((a) => typeof a === 'string') : [];
    this.venues = venueProblems(problem.venues);
    this.problem = problem;
    const notes = [this.retryAfterMs === null ? '' : `retry after ${this.retryAfterMs / 1000} s`, this.requestId ? `request ${this.requestId}` : ''].filter(Boolean);
    this.message = `[${this.code}] ${this.exchange ? `${this.exchange}: ` : ''}${detail}${notes.length ? ` (${notes.join(', ')})` : ''}`;
  }
}

/** A parameter is missing, malformed or out of range. */
export class InvalidParameter extends GatewayError {}
/** The route has no such parameter. */
export class UnknownParameter extends GatewayError {}
/** Several accounts fit and none was named. */
export class AccountAmbiguous extends GatewayError {}
/** No key of this gateway, or one that is not valid. */
export class Unauthenticated extends GatewayError {}
/** The key lacks the scope. */
export class Forbidden extends GatewayError {}
/** The gateway has nothing at this path. */
export class NotFound extends GatewayError {}
/** No exchange of this name is enabled. */
export class ExchangeUnknown extends GatewayError {}
/** The exchange does not list this pair. */
export class SymbolUnknown extends GatewayError {}
/** The exchange does not list this pair any more. */
export class SymbolDelisted extends GatewayError {}
/** No account of this name is configured. */
export class AccountUnknown extends GatewayError {}
/** The gateway holds no book of this pair yet: ask for its order book or ticker once. */
export class BookNotHeld extends GatewayError {}
/** The route does not answer this method. */
export class MethodNotAllowed extends GatewayError {}
/** An operator's action cannot be carried out now. */
export class Refused extends GatewayError {}
/** The request carries too large a body. */
export class BodyTooLarge extends GatewayError {}
/** The request's target is over 8 KiB. */
export class URITooLong extends GatewayError {}
/** The body of an action has to be JSON. */
export class UnsupportedMediaType extends GatewayError {}
/** The route speaks WebSocket. */
export class UpgradeRequired extends GatewayError {}
/** This client has used up its own quota. */
export class ClientRateLimited extends GatewayError {}
/** The request's headers are over 16 KiB. */
export class HeaderTooLarge extends GatewayError {}
/** The gateway has a bug: report it with the request id. */
export class Internal extends GatewayError {}
/** The gateway has no credential of this exchange. */
export class NoAccounts extends GatewayError {}
/** The exchange, or this gateway, has no such thing. */
export class ExchangeNotSupported extends GatewayError {}
/** The exchange refused the gateway's credential, not the caller's key. */
export class ExchangeAuthFailed extends GatewayError {}
/** The exchange refused the gateway's clock. */
export class ClockSkew extends GatewayError {}
/** The exchange does not serve the place on earth from which the gateway asks. */
export class ExchangeRestricted extends GatewayError {}
/** The exchange could not be reached, or answered with a server error. */
export class UpstreamError extends GatewayError {}
/** The exchange's answer could not be decoded, or was a book that cannot be true or a balance out of a cache. */
export class UpstreamBadResponse extends GatewayError {}
/** The exchange asked the gateway to slow down. */
export class UpstreamRateLimited extends GatewayError {}
/** The exchange shut the gateway's address out for a while. */
export class UpstreamBanned extends GatewayError {}
/** The exchange says that it is closed. */
export class ExchangeMaintenance extends GatewayError {}
/** The exchange kept failing, so it was not asked. */
export class CircuitOpen extends GatewayError {}
/** An operator isolated the exchange. */
export class Isolated extends GatewayError {}
/** An operator withholds answers of this exchange, also old ones. */
export class Withheld extends GatewayError {}
/** No copy of the book is as young as the caller or the policy asks; `ageMs` is that of the one there is. */
export class BookTooStale extends GatewayError {}
/** `requireLive`, and only a stale copy exists. */
export class NotLive extends GatewayError {}
/** The gateway has no list of the exchange's pairs yet. */
export class MarketsUnavailable extends GatewayError {}
/** No exchange has a book of this pair; `venues` says why. */
export class BooksUnavailable extends GatewayError {}
/** No exchange that was asked can answer; `venues` says why. */
export class PriceUnavailable extends GatewayError {}
/** One side of the book is empty, so there is no mid. */
export class BookOneSided extends GatewayError {}
/** A part of an operator's action did not work. */
export class ActionIncomplete extends GatewayError {}
/** The gateway's own bound is reached. */
export class Overloaded extends GatewayError {}
export class LocalResource extends GatewayError {}
/** This gateway is stopping. */
export class ShuttingDown extends GatewayError {}
/** The exchange did not answer before the deadline. */
export class UpstreamTimeout extends GatewayError {}
/** The gateway itself was not reached, or the connection to it broke. Of this client alone: no answer has this code. */
export class GatewayUnreachable extends GatewayError {}
/** The gateway did not answer within `timeout`. Of this client alone. */
export class GatewayTimeout extends GatewayError {}
/** What answered was not the gateway as it is documented. Of this client alone. */
export class BadAnswer extends GatewayError {}

/** Each code with its class and ccxt's word for it. A null prototype: codes come from outside. */
const CODES = Object.assign(Object.create(null), {
  invalid_parameter: [InvalidParameter, 'BadRequest'],
  unknown_parameter: [UnknownParameter, 'BadRequest'],
  account_ambiguous: [AccountAmbiguous, 'ArgumentsRequired'],
  unauthenticated: [Unauthenticated, 'AuthenticationError'],
  forbidden: [Forbidden, 'PermissionDenied'],
  not_found: [NotFound, 'BadRequest'],
  exchange_unknown: [ExchangeUnknown, 'BadRequest'],
  symbol_unknown: [SymbolUnknown, 'BadSymbol'],
  symbol_delisted: [SymbolDelisted, 'BadSymbol'],
  account_unknown: [AccountUnknown, 'BadRequest'],
  book_not_held: [BookNotHeld, 'BadRequest'],
  method_not_allowed: [MethodNotAllowed, 'NotSupported'],
  refused: [Refused, 'OperationRejected'],
  body_too_large: [BodyTooLarge, 'BadRequest'],
  uri_too_long: [URITooLong, 'BadRequest'],
  unsupported_media_type: [UnsupportedMediaType, 'BadRequest'],
  upgrade_required: [UpgradeRequired, 'BadRequest'],
  client_rate_limited: [ClientRateLimited, 'RateLimitExceeded'],
  header_too_large: [HeaderTooLarge, 'BadRequest'],
  internal: [Internal, 'ExchangeError'],
  no_accounts: [NoAccounts, 'NotSupported'],
  not_supported: [ExchangeNotSupported, 'NotSupported'],
  exchange_auth_failed: [ExchangeAuthFailed, 'AuthenticationError'],
  clock_skew: [ClockSkew, 'InvalidNonce'],
  exchange_restricted: [ExchangeRestricted, 'PermissionDenied'],
  upstream_error: [UpstreamError, 'ExchangeNotAvailable'],
  upstream_bad_response: [UpstreamBadResponse, 'BadResponse'],
  upstream_rate_limited: [UpstreamRateLimited, 'RateLimitExceeded'],
  upstream_banned: [UpstreamBanned, 'DDoSProtection'],
  exchange_maintenance: [ExchangeMaintenance, 'OnMaintenance'],
  circuit_open: [CircuitOpen, 'ExchangeNotAvailable'],
  isolated: [Isolated, 'ExchangeNotAvailable'],
  withheld: [Withheld, 'ExchangeNotAvailable'],
  book_too_stale: [BookTooStale, 'ExchangeNotAvailable'],
  not_live: [NotLive, 'ExchangeNotAvailable'],
  markets_unavailable: [MarketsUnavailable, 'ExchangeNotAvailable'],
  books_unavailable: [BooksUnavailable, 'ExchangeNotAvailable'],
  price_unavailable: [PriceUnavailable, 'ExchangeNotAvailable'],
  book_one_sided: [BookOneSided, 'ExchangeNotAvailable'],
  action_incomplete: [ActionIncomplete, 'ExchangeNotAvailable'],
  overloaded: [Overloaded, 'RateLimitExceeded'],
  local_resource: [LocalResource, 'ExchangeNotAvailable'],
  shutting_down: [ShuttingDown, 'ExchangeNotAvailable'],
  upstream_timeout: [UpstreamTimeout, 'RequestTimeout'],
  gateway_unreachable: [GatewayUnreachable, 'ExchangeNotAvailable'],
  gateway_timeout: [GatewayTimeout, 'RequestTimeout'],
  bad_answer: [BadAnswer, 'BadResponse'],
});

/** The error that a problem document is. It takes whatever is there: a wrong field is no reason to lose the rest. */
function problemError(p, status, header) {
  const [Class] = CODES[text(p.code) ?? ''] ?? [GatewayError];
  const detail = text(p.detail) ?? text(p.title) ?? 'The answer does not say what is wrong.';
  const retryAfterMs = p.retryable === true ? count(p.retry_after_ms) ?? headerMs(header) : undefined;
  return new Class(detail, p, { status, retryAfterMs });
}

function venueProblems(rows) {
  const all = Object.create(null);
  for (const r of Array.isArray(rows) ? rows : []) {
    if (isObject(r) && typeof r.exchange === 'string' && isObject(r.problem)) all[r.exchange] = problemError(r.problem);
  }
  return all;
}

const local = (Class, code, detail, more) => new Class(detail, {}, { code, ...more });
const unreachable = (detail, more) => local(GatewayUnreachable, 'gateway_unreachable', detail, { retryable: true, ...more });
const badAnswer = (detail, more) => local(BadAnswer, 'bad_answer', detail, { retryable: false, ...more });

const text = (v) => (typeof v === 'string' ? v : undefined);
const count = (v) => (Number.isSafeInteger(v) && v >= 0 ? v : undefined);
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const headerMs = (v) => (typeof v === 'string' && /^[0-9]{1,9}$/.test(v) ? Number(v) * 1000 : undefined);

// ---------------------------------------------------------------------------------------------------------------------
// Numbers. They are text, and are compared, halved and subtracted as text or as BigInt.

const NUMBER = /^(-?)0*([0-9]+?)(?:\.([0-9]*?)0*)?$/;

/** The parts of a number, without zeros that say nothing. */
function parts(v) {
  const m = typeof v === 'string' && v.length <= MAX_NUMBER && /^-?[0-9]+(\.[0-9]+)?$/.test(v) ? NUMBER.exec(v) : null;
  if (!m) throw new Wrong(`${show(v)} is no number in a string`);
  return { sign: m[1] === '-' && (m[2] !== '0' || m[3]) ? -1 : 1, whole: m[2], fraction: m[3] ?? '' };
}

const canonical = ({ sign, whole, fraction }) => (sign < 0 ? '-' : '') + whole + (fraction && `.${fraction}`);

/** Compares two numbers exactly: below 0, 0 or above 0, as sort wants it. */
export function compareNumbers(a, b) {
  const x = parts(a), y = parts(b);
  if (x.sign !== y.sign) return x.sign;
  const by = (p, q) => (p < q ? -1 : p > q ? 1 : 0);
  const order = x.sign * (x.whole.length - y.whole.length || by(x.whole, y.whole) || by(x.fraction, y.fraction));
  return order || 0; // and not -0
}

/** f over two numbers as integers of one scale; the text of its result, which has `more` digits more behind the point. */
function exactly(a, b, more, f) {
  const [x, y] = [parts(a), parts(b)];
  const scale = Math.max(x.fraction.length, y.fraction.length);
  const int = (p) => BigInt(p.whole + p.fraction.padEnd(scale, '0')) * BigInt(p.sign);
  const sum = f(int(x), int(y)), digits = String(sum < 0n ? -sum : sum).padStart(scale + more + 1, '0');
  const at = digits.length - scale - more;
  return canonical(parts((sum < 0n ? '-' : '') + digits.slice(0, at) + (scale + more ? `.${digits.slice(at)}` : '')));
}

// ---------------------------------------------------------------------------------------------------------------------
// Answers.

/** A document is not as it is documented. */
class Wrong extends Error {}

const show = (v) => String(JSON.stringify(v)).slice(0, 40);

function want(d, name, ok, what) {
  if (!ok(d[name])) throw new Wrong(`${name} is no ${what}: ${show(d[name])}`);
  return d[name];
}
const object = (d, name) => want(d, name, isObject, 'object');
const list = (d, name) => want(d, name, Array.isArray, 'list');
const string = (d, name) => want(d, name, (v) => typeof v === 'string', 'text');
const maybeString = (d, name) => want(d, name, (v) => v === null || v === undefined || typeof v === 'string', 'text') ?? null;
const integer = (d, name) => want(d, name, Number.isSafeInteger, 'integer');
const flag = (d, name) => want(d, name, (v) => typeof v === 'boolean', 'boolean');
const number = (d, name) => canonical(parts(d[name])) && d[name];
const maybeNumber = (d, name) => (d[name] === null || d[name] === undefined ? null : number(d, name));

function moment(d, name) {
  const at = Date.parse(string(d, name));
  if (Number.isNaN(at)) throw new Wrong(`${name} is no time: ${show(d[name])}`);
  return at;
}

/** How far an answer can be trusted: the document, and an age that goes on. */
export class Freshness {
  #received;

  constructor(d, received = performance.now()) {
    this.#received = received;
    this.status = string(d, 'status');
    this.source = string(d, 'source');
    this.reason = maybeString(d, 'reason');
    this.circuit = maybeString(d, 'circuit');
    this.confirmed_at = maybeString(d, 'confirmed_at');
    this.changed_at = maybeString(d, 'changed_at');
    this.exchange_lag_ms = d.exchange_lag_ms ?? null;
    this.age_ms = d.age_ms === null ? null : integer(d, 'age_ms');
  }

  /** What the gateway said. A book that was live when it came is not that for ever: see ageMs. */
  get stale() { return this.status !== 'live'; }

  /** Milliseconds since the exchange vouched for it: as the answer said, and on from when it came. null: nobody ever did. */
  get ageMs() { return this.age_ms === null ? null : this.age_ms + (performance.now() - this.#received); }

  /** Whether it is older than that now. */
  olderThan(ms) { return this.age_ms === null || this.ageMs > ms; }

  /** The same confirmation, told anew: its age goes on. */
  as(status, reason) {
    return new Freshness({ ...this, status, reason }, this.#received);
  }
}

/** One book: bids from the highest price down, asks from the lowest up, each [price, size]. */
export class OrderBook {
  constructor(fields) { Object.assign(this, fields); }

  /** Half way between the best bid and the best ask, exactly; null for a book with one side. */
  get mid() { return this.#top(1, (b, a) => (b + a) * 5n); }

  /** Best ask less best bid, exactly; null for a book with one side. */
  get spread() { return this.#top(0, (b, a) => a - b); }

  #top(more, f) {
    return this.bids.length && this.asks.length ? exactly(this.bids[0][0], this.asks[0][0], more, f) : null;
  }
}

function levels(d, name) {
  return list(d, name).map((l) => {
    if (!Array.isArray(l) || l.length !== 2) throw new Wrong(`${show(l)} is no level`);
    if (parts(l[0]).sign < 0 || parts(l[1]).sign < 0) throw new Wrong(`${show(l)} is below zero`);
    return [l[0], l[1]];
  });
}

// An exchange's sequence that is no integer of JavaScript's is better none than a neighbour.
const sequence = (v) => (Number.isSafeInteger(v) ? v : null);

function readBook(d) {
  return new OrderBook({
    exchange: string(d, 'exchange'), symbol: string(d, 'symbol'), exchange_symbol: string(d, 'exchange_symbol'),
    market_status: maybeString(d, 'market_status'), market_status_at: maybeString(d, 'market_status_at'), stale: flag(d, 'stale'), freshness: new Freshness(object(d, 'freshness')),
    depth: integer(d, 'depth'), complete: flag(d, 'complete'), timestamp: d.timestamp ?? null, datetime: maybeString(d, 'datetime'),
    nonce: sequence(d.nonce), bids: levels(d, 'bids'), asks: levels(d, 'asks'), epoch: null, seq: null, missed: null,
  });
}

const FIGURES = ['bid', 'bidVolume', 'ask', 'askVolume', 'mid', 'spread', 'last', 'open', 'high', 'low', 'change', 'percentage', 'baseVolume', 'quoteVolume'];

function readTicker(d) {
  const stats = object(d, 'stats_freshness');
  return {
    ...d, exchange: string(d, 'exchange'), symbol: string(d, 'symbol'), market_status: maybeString(d, 'market_status'),
    market_status_at: maybeString(d, 'market_status_at'), stale: flag(d, 'stale'), freshness: new Freshness(object(d, 'freshness')),
    ...Object.fromEntries(FIGURES.map((f) => [f, maybeNumber(d, f)])),
    stats_freshness: stats.status === 'unavailable' ? null : new Freshness(stats), stats_reason: maybeString(stats, 'reason'),
  };
}

/** Sorts rows into answers and problems, by one of their fields. */
function sorted(rows, by, what, read) {
  const good = Object.create(null), problems = Object.create(null);
  for (const r of rows) {
    if (!isObject(r)) throw new Wrong(`${show(r)} is no object`);
    if (isObject(r[what])) good[string(r, by)] = read(r[what]);
    else problems[string(r, by)] = problemError(object(r, 'problem'));
  }
  return [good, problems];
}

function readTickers(d) {
  const [tickers, problems] = sorted(list(d, 'tickers'), 'symbol', 'ticker', readTicker);
  return { exchange: string(d, 'exchange'), tickers, problems };
}

function readBest(d, name) {
  if (d[name] === null) return null;
  const b = object(d, name);
  return { exchange: string(b, 'exchange'), price: number(b, 'price'), size: number(b, 'size') };
}

function readBooks(d) {
  const [books, problems] = sorted(list(d, 'venues'), 'exchange', 'orderbook', readBook);
  return { symbol: string(d, 'symbol'), best_bid: readBest(d, 'best_bid'), best_ask: readBest(d, 'best_ask'), books, problems };
}

function readPrice(d) {
  return {
    symbol: string(d, 'symbol'), exchange: string(d, 'exchange'), mid: number(d, 'mid'), bid: maybeNumber(d, 'bid'),
    bidVolume: maybeNumber(d, 'bidVolume'), ask: maybeNumber(d, 'ask'), askVolume: maybeNumber(d, 'askVolume'), fallback: flag(d, 'fallback'),
    stale: flag(d, 'stale'), freshness: new Freshness(object(d, 'freshness')), passed: venueProblems(list(d, 'passed')),
  };
}

function readMarkets(d) {
  const numbers = ['tick', 'lot', 'min_size', 'min_notional'];
  return {
    exchange: string(d, 'exchange'), stale: flag(d, 'stale'), freshness: new Freshness(object(d, 'freshness')),
    markets: list(d, 'markets').map((m) => ({
      ...m, symbol: string(m, 'symbol'), active: flag(m, 'active'), ...Object.fromEntries(numbers.map((n) => [n, maybeNumber(m, n)])),
    })),
  };
}

function readBalance(d) {
  const balances = Object.create(null);
  for (const [asset, row] of Object.entries(object(d, 'balances'))) {
    if (!isObject(row)) throw new Wrong(`${show(row)} is no object`);
    balances[asset] = { free: number(row, 'free'), used: number(row, 'used'), total: number(row, 'total'), debt: maybeNumber(row, 'debt') };
  }
  return {
    exchange: string(d, 'exchange'), account: string(d, 'account'), account_type: string(d, 'account_type'), balances,
    requested_at: string(d, 'requested_at'), received_at: string(d, 'received_at'), timestamp: d.timestamp ?? null,
  };
}

// ---------------------------------------------------------------------------------------------------------------------
// The client.

/** The options of a call, TypeError for one that it does not have: a mistyped maxAgeMs must not mean none at all. */
function only(where, options, ...names) {
  if (options === undefined) return {};
  if (!isObject(options)) throw new TypeError(`the options of ${where} are an object, { ${names.join(', ')} }`); // what stands there may be a key, and is not shown
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw new TypeError(`${where} has no option ${JSON.stringify(name.slice(0, 40))}; it has ${names.join(', ')}`);
  }
  return options;
}

/** A gateway, by its address. Methods reject with a GatewayError, or with the reason of the caller's own AbortSignal. */
export class Gateway {
  #base;
  #headers;
  #timeoutMs;
  #fetch;

  /** options: key; timeoutMs for one request, connecting and reading included (10,000); fetch, another than the global one. */
  constructor(baseURL = 'http://127.0.0.1:8080', options = undefined) {
    const { key, timeoutMs = 10_000, fetch = globalThis.fetch } = only('new Gateway', options, 'key', 'timeoutMs', 'fetch');
    const u = new URL(baseURL);
    if (!/^https?:$/.test(u.protocol) || u.username || u.password || u.search || u.hash) throw new TypeError('baseURL is http:// or https://, a host, perhaps a port and a path');
    if (key !== undefined && !/^[!-~]{1,256}$/.test(key)) throw new TypeError("the key is not one of the gateway's, which are gw_..., without spaces"); // and it is not shown
    if (!(timeoutMs > 0)) throw new TypeError('timeoutMs is a number above 0');
    this.#base = u.origin + u.pathname.replace(/\/+$/, '');
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    this.#timeoutMs = timeoutMs;
    this.#fetch = (...args) => fetch(...args); // the global one may not be called as a method
  }

  /** The exchanges that are enabled. */
  async exchanges(options) {
    return this.#get('/v1/exchanges', {}, only('exchanges', options, 'signal'), (d) => ({ ...d, exchanges: list(d, 'exchanges'), degraded: list(d, 'degraded') }));
  }

  /** One book. maxAgeMs: the age that you accept, BookTooStale beyond it; requireLive: NotLive instead of a stale one. */
  async orderBook(exchange, symbol, options) {
    const { depth, maxAgeMs, requireLive, signal } = only('orderBook', options, 'depth', 'maxAgeMs', 'requireLive', 'signal');
    return this.#get(of(exchange, 'orderbook'), { symbol, depth, max_age_ms: maxAgeMs, require: requireLive ? 'live' : undefined }, { signal }, readBook);
  }

  /** Best bid and ask, mid, spread and the figures of 24 hours. */
  async ticker(exchange, symbol, options) {
    const { maxAgeMs, requireLive, signal } = only('ticker', options, 'maxAgeMs', 'requireLive', 'signal');
    return this.#get(of(exchange, 'ticker'), { symbol, max_age_ms: maxAgeMs, require: requireLive ? 'live' : undefined }, { signal }, readTicker);
  }

  /** Up to 50 tickers from books that the gateway holds already, of whatever age; it asks no exchange. */
  async tickers(exchange, symbols, options) {
    return this.#get(of(exchange, 'tickers'), { symbols: symbols.join(',') }, only('tickers', options, 'signal'), readTickers);
  }

  /** The pairs that an exchange lists. */
  async markets(exchange, options) { return this.#get(of(exchange, 'markets'), {}, only('markets', options, 'signal'), readMarkets); }

  /** What an exchange announces, and how the gateway finds it. */
  async status(exchange, options) {
    const { signal } = only('status', options, 'signal');
    return this.#get(of(exchange, 'status'), {}, { signal }, (d) => ({ ...d, exchange: string(d, 'exchange'), status: string(d, 'status') }));
  }

  /** Balances, live or an error. Needs a key with account:read. */
  async balance(exchange, options) {
    const { account, wallet, signal } = only('balance', options, 'account', 'wallet', 'signal');
    return this.#get(of(exchange, 'balance'), { account, wallet }, { signal }, readBalance);
  }

  /** Every exchange's book of a pair, or why there is none, within a second. */
  async orderBooks(symbol, options) {
    const { depth, maxAgeMs, signal } = only('orderBooks', options, 'depth', 'maxAgeMs', 'signal');
    return this.#get('/v1/orderbooks', { symbol, depth, max_age_ms: maxAgeMs }, { signal }, readBooks);
  }

  /** The mid of the first exchange, in your order, that can answer. */
  async price(symbol, options) {
    const { exchanges, maxAgeMs, signal } = only('price', options, 'exchanges', 'maxAgeMs', 'signal');
    return this.#get('/v1/price', { symbol, exchanges: exchanges?.join(','), max_age_ms: maxAgeMs }, { signal }, readPrice);
  }

  /** Everything that an operator sees. */
  async circuits(options) { return this.#get('/v1/circuits', {}, only('circuits', options, 'signal'), (d) => d); }

  /** Every error code of this gateway. */
  async errors(options) { return this.#get('/v1/errors', {}, only('errors', options, 'signal'), (d) => list(d, 'errors')); }

  /** The contract of the HTTP API, OpenAPI 3.1. */
  async openapi(options) { return this.#get('/openapi.json', {}, only('openapi', options, 'signal'), (d) => d); }

  /** What is degraded, empty if nothing. Rejects while the gateway takes no requests. */
  async ready(options) { return this.#get('/readyz', {}, only('ready', options, 'signal'), (d) => list(d, 'degraded')); }

  /** Resolves if the process answers. */
  async live(options) { return this.#get('/livez', {}, only('live', options, 'signal'), () => undefined); }

  /**
   * The book as it changes, for ever: after each message, and at once when it is not live any more.
   *
   * A lost connection is made again (1 s doubling to 30 s, never before Retry-After), and a message that does not fit what is
   * held makes the client ask for the whole book. Meanwhile the book that you get is the last one, stale, with the reason:
   * "disconnected", "silent", "gap", or the code of the gateway's refusal. Before the first snapshot, and while an operator
   * withholds it, the book is empty and stale. A refusal that no repeating can help is thrown.
   *
   * It is read all the time from the first turn on, whatever the loop does, until the loop is left, return() is called, the signal
   * aborts or it throws. So a loop that is slower than the book misses versions, not the newest one: each turn gets the newest
   * state, as it is then, and `missed` says how many versions this loop did not get since the one before. A watch that is left
   * open while nobody waits for its next book does not keep a process of Node alive.
   *
   * options: depth, one of 1, 5, 20, 50 (default), 100, 400; everyMs, a book at least so often, also when nothing changes;
   * silenceMs (25,000), without a message, after which the connection counts as lost: the gateway sends one each 15 s; signal.
   */
  watchOrderBook(exchange, symbol, options) {
    return new Books(new Watch(() => {
      const { depth = 50, everyMs, silenceMs = 25_000, signal } = only('watchOrderBook', options, 'depth', 'everyMs', 'silenceMs', 'signal');
      if (!(silenceMs > 0) || (everyMs !== undefined && !(everyMs > 0))) throw new TypeError('everyMs and silenceMs are numbers above 0');
      const connect = (lastEventID, stop) => this.#stream('/v1/stream/orderbook', { exchange, symbol, depth }, lastEventID, stop, true);
      return { kept: new Kept(exchange, symbol, depth), connect, everyMs, silenceMs, signal };
    }));
  }

  /**
   * What operators see, as it changes: { type: 'snapshot' | 'event' | 'state', data }, until the connection ends, which is a
   * GatewayUnreachable. Each connection begins with a snapshot, so calling it again is all it takes to go on. Nothing is left
   * out: a loop that is slower gets each late, and the data says of when it is (`now`, `at`).
   */
  async* watchCircuits(options) {
    const { silenceMs = 25_000, signal } = only('watchCircuits', options, 'silenceMs', 'signal');
    if (!(silenceMs > 0)) throw new TypeError('silenceMs is a number above 0');
    const stream = await this.#stream('/v1/circuits/events', {}, undefined, signal);
    try {
      for (;;) {
        const e = await stream.next(silenceMs);
        if (!e) throw unreachable(`The stream was silent for ${silenceMs} ms.`);
        yield { type: e.type, data: readEvent(e) };
      }
    } finally {
      stream.close();
    }
  }

  /** A connection of server-sent events; a loose one does not keep a process of Node alive. */
  async #stream(path, params, lastEventID, signal, loose = false) {
    const headers = { accept: 'text/event-stream', ...(lastEventID === undefined ? {} : { 'last-event-id': lastEventID }) };
    const call = new Call(signal, this.#timeoutMs, loose);
    try {
      const res = await this.#ask(call, path, params, headers, loose);
      if (res.status !== 200) throw await refusal(res, call.signal);
      if (!/^text\/event-stream\b/.test(res.headers.get('content-type') ?? '')) throw badAnswer('The answer is no stream of events.', { status: res.status });
      call.opened();
      return new Stream(res.body, call, loose);
    } catch (err) {
      call.end();
      throw call.explain(err);
    }
  }

  async #get(path, params, { signal }, read) {
    const call = new Call(signal, this.#timeoutMs);
    try {
      const res = await this.#ask(call, path, params, { accept: 'application/json, application/problem+json' });
      if (res.status !== 200) throw await refusal(res, call.signal);
      const d = parse(await body(res, call.signal));
      return read(d);
    } catch (err) {
      throw call.explain(err);
    } finally {
      call.end();
    }
  }

  #ask(call, path, params, headers, loose = false) {
    const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== undefined && v !== null).map(([k, v]) => [k, String(v)]));
    const url = `${this.#base}${path}${query.size ? `?${query}` : ''}`;
    const ask = () => this.#fetch(url, {
      headers: { ...headers, ...this.#headers }, signal: call.signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
    });
    return loose ? loosely(url, ask) : ask();
  }
}

const of = (exchange, what) => `/v1/exchanges/${encodeURIComponent(exchange)}/${what}`;

/** Full jitter from 1 s, doubling to 30 s, so that many clients do not come back at once; never before Retry-After. */
function backoff(attempts, retryAfterMs) {
  return Math.max(retryAfterMs ?? 0, 50 + Math.random() * (Math.min(MAX_BACKOFF, 1000 * 2 ** Math.min(attempts, 10)) - 50));
}

/** For the reader of a watch, so it does not keep a process of Node alive. */
function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) { reject(signal.reason); return; }
    const ended = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', ended); resolve(undefined); }, ms);
    timer.unref?.();
    signal?.addEventListener('abort', ended, { once: true });
  });
}

const SENT = 'undici:client:sendHeaders'; // where Node's fetch tells which socket a request goes to

/**
 * Asks so that the answer, which may go on for ever, does not keep a process of Node alive: fetch itself cannot say that. Where
 * nobody tells of the socket (a browser, another runtime, a fetch of the caller's) it changes nothing.
 */
async function loosely(url, ask) {
  const { process } = globalThis, name = 'node:diagnostics_channel';
  const channels = process?.versions?.node
    ? process.getBuiltinModule?.(name) ?? await import(/* webpackIgnore: true */ /* @vite-ignore */ name).catch(() => undefined) : undefined;
  if (!channels?.subscribe) return ask();
  const { origin, pathname, search } = new URL(url);
  const sent = ({ request, socket }) => { if (request.origin === origin && request.path === pathname + search) socket.unref?.(); };
  channels.subscribe(SENT, sent);
  try {
    return await ask();
  } finally {
    channels.unsubscribe(SENT, sent);
  }
}

// What Node tells of a connection that was never there, in words. A browser tells no page why.
const NOT_REACHED = {
  ECONNREFUSED: 'connection refused', ENOTFOUND: 'no such host', EAI_AGAIN: 'its name cannot be looked up now', EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network', ETIMEDOUT: 'no answer to the connection', UND_ERR_CONNECT_TIMEOUT: 'no answer to the connection',
};

/** Why a fetch failed, which is in the error's cause, or in the first of several: one for each address of a name. */
function brokenWords(err) {
  const why = err?.cause?.code ? err.cause : err?.cause?.errors?.[0] ?? err?.cause ?? err;
  if (why?.code in NOT_REACHED) return `The gateway was not reached: ${NOT_REACHED[why.code]} (${why.code}).`;
  if (why?.code) return `The connection to the gateway broke: ${why.code}.`;
  if (err?.cause?.message) return `The gateway was not reached: ${err.cause.message}.`;
  return 'The gateway was not reached, or the connection to it broke: the runtime does not say why.';
}

/** What ends one fetch: the caller's signal, the timeout, or close. */
class Call {
  #ended = new AbortController();
  #outer;
  #timer;
  #late;
  #forward = () => this.#ended.abort(this.#outer.reason);

  constructor(outer, timeoutMs, loose = false) {
    this.#outer = outer;
    if (outer?.aborted) this.#forward();
    outer?.addEventListener('abort', this.#forward, { once: true });
    this.#timer = setTimeout(() => {
      this.#late = local(GatewayTimeout, 'gateway_timeout', `The gateway did not answer within ${timeoutMs} ms.`, { retryable: true });
      this.#ended.abort(this.#late);
    }, timeoutMs);
    if (loose) this.#timer.unref?.();
  }

  get signal() { return this.#ended.signal; }

  /** A stream has no bound but silence. */
  opened() { clearTimeout(this.#timer); }

  end() {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#forward);
  }

  close() {
    this.end();
    this.#ended.abort();
  }

  /** Whose fault it was that the fetch failed. */
  explain(err) {
    if (this.#outer?.aborted) return this.#outer.reason;
    if (this.#late) return this.#late;
    if (err instanceof GatewayError) return err;
    if (err instanceof Wrong) return badAnswer(`The answer is not as it is documented: ${err.message}.`);
    return unreachable(brokenWords(err), { cause: err });
  }
}

/**
 * A reader that a signal ends. The signal of fetch should do that, but Node's fetch can lose it when it collects garbage while an answer
 * goes on (seen in 20.20): the connection then stays open.
 */
function cancelled(reader, signal) {
  signal.addEventListener('abort', () => { reader.cancel(signal.reason).catch(() => {}); }, { once: true });
  return reader;
}

async function body(res, signal) {
  if (!res.body) return '';
  const reader = cancelled(res.body.getReader(), signal), decoder = new TextDecoder('utf-8', { fatal: true });
  let all = '', size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    signal.throwIfAborted();
    try {
      all += decoder.decode(value, { stream: !done });
    } catch {
      throw new Wrong('it is no UTF-8');
    }
    if (done) return all;
    size += value.length;
    if (size > MAX_BODY) {
      await reader.cancel();
      throw new Wrong(`it is larger than ${MAX_BODY} bytes`);
    }
  }
}

function parse(text) {
  let d;
  try {
    d = JSON.parse(text);
  } catch {
    throw new Wrong('it is no JSON');
  }
  if (!isObject(d)) throw new Wrong('it is no object');
  return d;
}

// Between the gateway and this client: a proxy that has no gateway behind it says so with one of these, in words of its own.
const FROM_A_PROXY = [429, 502, 503, 504];

/** The error that an answer other than 200 is. */
async function refusal(res, signal) {
  const said = await body(res, signal).catch((err) => { if (err instanceof Wrong) return ''; throw err; });
  if (/^application\/problem\+json\b/.test(res.headers.get('content-type') ?? '')) {
    try {
      return problemError(parse(said), res.status, res.headers.get('retry-after'));
    } catch (err) {
      if (!(err instanceof Wrong)) throw err; // what is no problem document is told below, by its status
    }
  }
  if (FROM_A_PROXY.includes(res.status)) {
    return unreachable(`Something before the gateway answered HTTP ${res.status}.`, { status: res.status, retryAfterMs: headerMs(res.headers.get('retry-after')) });
  }
  return badAnswer(`HTTP ${res.status} without a problem document: is this the gateway's address?`, { status: res.status });
}

// ---------------------------------------------------------------------------------------------------------------------
// Server-sent events.

/** Takes text, gives events: the event stream format of HTML, with line ends as \n or \r\n. */
class EventReader {
  #rest = '';
  #lines = [];
  #size = 0;

  feed(part) {
    const lines = (this.#rest + part).split('\n');
    this.#rest = lines.pop();
    const events = [];
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line) {
        this.#lines.push(line);
        this.#size += line.length;
        continue;
      }
      const e = this.#event();
      if (e) events.push(e);
    }
    if (this.#size + this.#rest.length > MAX_EVENT) throw new Wrong(`an event of more than ${MAX_EVENT} characters`);
    return events;
  }

  #event() {
    let type = 'message', id, data;
    for (const line of this.#lines) {
      const at = line.indexOf(':'), name = at < 0 ? line : line.slice(0, at);
      const value = at < 0 ? '' : line.slice(line[at + 1] === ' ' ? at + 2 : at + 1);
      if (name === 'event') type = value;
      else if (name === 'id') id = value;
      else if (name === 'data') data = data === undefined ? value : `${data}\n${value}`;
    }
    this.#lines = [];
    this.#size = 0;
    return data === undefined ? undefined : { type, id, data }; // a comment, or `retry` alone
  }
}

const unreadable = (err) => badAnswer(`The stream is not readable: ${err.message}.`, { retryable: true });

function readEvent(e) {
  try {
    return parse(e.data);
  } catch (err) {
    throw unreadable(err);
  }
}

/** One connection of server-sent events. */
class Stream {
  #reader;
  #call;
  #decoder = new TextDecoder();
  #events = new EventReader();
  #ready = [];
  #pending; // a read that a timeout left behind, for the next call
  #loose;

  constructor(body, call, loose) {
    this.#reader = cancelled(body.getReader(), call.signal);
    this.#call = call;
    this.#loose = loose;
  }

  /** The next event, with the moment when it was read; undefined if none came in time. GatewayUnreachable when the stream has ended. */
  async next(timeoutMs) {
    const end = performance.now() + timeoutMs;
    while (!this.#ready.length) {
      const left = end - performance.now();
      if (left <= 0) return undefined;
      this.#pending ??= this.#reader.read();
      // Where the event loop was blocked, time is up before what came meanwhile is read. So there is one more look.
      const got = await within(this.#pending, left, this.#loose).then((some) => some ?? Promise.race([this.#pending, turn().then(turn)]))
        .catch((err) => { throw this.#call.explain(err); });
      if (!got) return undefined;
      this.#pending = undefined;
      if (got.done) throw this.#call.explain(unreachable('The stream ended.'));
      try {
        const at = performance.now();
        for (const e of this.#events.feed(this.#decoder.decode(got.value, { stream: true }))) this.#ready.push({ ...e, at });
      } catch (err) {
        throw err instanceof Wrong ? unreadable(err) : err;
      }
    }
    return this.#ready.shift();
  }

  close() {
    this.#pending?.catch(() => {}); // it is cut off here, and nobody waits for it
    this.#call.close();
  }
}

/** What a promise resolves to, undefined if not in time. The promise goes on. */
async function within(promise, ms, loose) {
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, Math.min(ms, MAX_TIMER)); });
  if (loose) timer.unref?.();
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

const immediate = globalThis.setImmediate;

/** Resolves a turn of the event loop later. Timers would do as well, but browsers hold them back in pages that nobody sees. */
function turn() {
  return new Promise((resolve) => {
    if (immediate) {
      immediate(resolve);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); resolve(undefined); };
    port2.postMessage(null);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// A watch.

const dropped = new FinalizationRegistry((watch) => watch.end());

/** What a consumer holds of a watch. A consumer that forgets to end it, and drops it, ends it when that is found out. */
class Books {
  #watch;

  constructor(watch) {
    this.#watch = watch;
    dropped.register(this, watch);
  }

  [Symbol.asyncIterator]() { return this; }

  async next() {
    const watch = this.#watch;
    try {
      return await watch.next();
    } finally {
      this.#watch = watch; // so this is held, and the watch goes on, as long as somebody waits
    }
  }

  async return(value) {
    this.#watch.end();
    return { done: true, value: await value };
  }

  async throw(err) {
    this.#watch.end();
    throw err;
  }

  static {
    if (Symbol.asyncDispose) this.prototype[Symbol.asyncDispose] = async function dispose() { await this.return(); };
  }
}

/**
 * A reader and what takes from it. The reader reads always, from the first turn on, applies each message to the book that is kept,
 * and connects again as often as needed; it never waits for the consumer, so nothing grows old in buffers. A turn gives the newest
 * state if that is another than the one before: there is no queue between the two.
 */
class Watch {
  #begin; // gives what to read, or throws: with the first turn, as of a generator
  #kept;
  #connect;
  #everyMs;
  #silenceMs;
  #signal; // the caller's
  #aborted = () => this.#fail(this.#signal.reason);
  #stop = new AbortController(); // ends the reader and its connection
  #changed = false; // since the last turn
  #failed; // { err }: why there is nothing more
  #done = false;
  #heard; // when the last message was read, undefined without a connection
  #reads = 0; // how often the reader had something
  #shown; // when the last turn was
  #wake = () => {};
  #turns = Promise.resolve(); // until the turn before is over

  constructor(begin) { this.#begin = begin; }

  /** The next turn, after those that were asked for before. */
  next() {
    const next = this.#turns.then(() => this.#next());
    this.#turns = next.catch(() => {});
    return next;
  }

  async #next() {
    if (this.#done) return { done: true, value: undefined };
    const hold = setInterval(() => {}, MAX_TIMER); // who waits keeps a process of Node alive; the reader does not
    try {
      if (this.#begin) this.#start();
      do {
        await this.#news();
        await this.#settled();
      } while (!this.#over() && !this.#due());
      if (this.#done) return { done: true, value: undefined };
      if (this.#failed) throw this.#failed.err;
      this.#changed = false;
      this.#shown = performance.now();
      return { done: false, value: this.#kept.take() };
    } catch (err) {
      this.end();
      throw err;
    } finally {
      clearInterval(hold);
    }
  }

  #start() {
    const { kept, connect, everyMs, silenceMs, signal } = this.#begin();
    signal?.throwIfAborted();
    [this.#begin, this.#kept, this.#connect, this.#everyMs, this.#silenceMs, this.#signal] = [undefined, kept, connect, everyMs, silenceMs, signal];
    signal?.addEventListener('abort', this.#aborted, { once: true });
    this.#shown = performance.now();
    this.#read().catch((err) => this.#fail(err));
  }

  /** Ends the reader and its connection, at once. */
  end() {
    this.#done = true;
    this.#signal?.removeEventListener('abort', this.#aborted);
    this.#stop.abort();
    this.#wake();
  }

  #fail(err) {
    this.#failed ??= { err };
    this.#signal?.removeEventListener('abort', this.#aborted);
    this.#stop.abort();
    this.#wake();
  }

  #over() { return this.#done || this.#failed !== undefined; }

  /** Whether there is something to give: a change, or that everyMs has passed. */
  #due() { return this.#changed || (this.#everyMs !== undefined && performance.now() - this.#shown >= this.#everyMs); }

  async #news() {
    if (this.#over() || this.#due()) return;
    const woken = new Promise((resolve) => { this.#wake = resolve; });
    if (this.#everyMs === undefined) await woken;
    else await within(woken, this.#shown + this.#everyMs - performance.now());
  }

  /**
   * Waits until the reader has read what has arrived. Without that a consumer that blocks the event loop, or one that comes here
   * before the reader has taken in the rest of what was read at once, would get what was new before.
   */
  async #settled() {
    for (let turns = 0, before; turns < 2 || (turns < MAX_TURNS && (this.#reads !== before || this.#overdue())); turns++) {
      before = this.#reads;
      await turn();
    }
  }

  #overdue() { return this.#heard !== undefined && performance.now() - this.#heard >= this.#silenceMs; }

  #tell() {
    this.#reads++;
    this.#changed = true;
    this.#wake();
  }

  /** Reads until it is stopped, or until a refusal that no repeating can help, which it throws. */
  async #read() {
    const kept = this.#kept, { signal } = this.#stop;
    for (let attempts = 0; ;) {
      let reason = 'disconnected', wait;
      try {
        await this.#follow();
        reason = 'silent';
      } catch (err) {
        if (err instanceof Gap) {
          kept.forget();
          reason = 'gap';
        } else if (!(err instanceof GatewayError) || !err.retryable) {
          throw err;
        } else {
          if (!(err instanceof GatewayUnreachable)) reason = err.code;
          wait = err.retryAfterMs;
        }
      }
      kept.lost(reason);
      this.#tell();
      attempts = kept.progress ? 0 : attempts + 1;
      kept.progress = false;
      await sleep(backoff(attempts, wait), signal);
    }
  }

  /** One connection, until it was silent for too long. */
  async #follow() {
    const stream = await this.#connect(this.#kept.lastEventID, this.#stop.signal);
    this.#kept.connected();
    this.#heard = performance.now();
    try {
      for (;;) {
        const e = await stream.next(Math.max(1, this.#heard + this.#silenceMs - performance.now()));
        if (!e) return;
        this.#heard = e.at;
        this.#reads++;
        if (this.#kept.apply(e)) this.#tell();
      }
    } finally {
      this.#heard = undefined;
      stream.close();
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// A book that is kept from a stream.

/** A message does not belong to the one before it: what is held is not a book of the exchange any more. */
class Gap extends Error {}

/**
 * One book, brought up to each message. It is live only while that is proven. A status "live" alone proves nothing about the
 * levels that are held: a snapshot may follow it, after a reconnect or in a new epoch. So the book is live again with the
 * next message that carries levels, or with a heartbeat, before which such a snapshot would have come.
 */
class Kept {
  progress = false; // a message with levels came over this connection
  #names;
  #depth;
  #epoch = null;
  #seq = null;
  #bids = new Map(); // by canonical price, [price, size] as they came
  #asks = new Map();
  #sides; // sorted, until a level changes
  #complete = false;
  #nonce = null;
  #time = null;
  #fresh = new Freshness({ status: 'syncing', source: 'stream', reason: 'connecting', age_ms: null });
  #promised = false; // the gateway calls it live; not proven yet
  #quickest = Infinity; // the least of (read here - sent there) of this connection, ms between two clocks
  #untaken = false; // the version that is held was not handed out
  #missed = 0; // versions before it that were not

  constructor(exchange, symbol, depth) {
    this.#names = { exchange, symbol, exchange_symbol: '' };
    this.#depth = depth;
  }

  /** The version that is held, as the gateway names it. */
  get lastEventID() { return this.#seq === null ? undefined : `${this.#epoch}-${this.#seq}`; }

  connected() {
    this.progress = this.#promised = false;
    this.#quickest = Infinity;
  }

  /** Nothing more is heard: what is held stays, and is stale. */
  lost(reason) {
    this.#promised = false;
    this.#fresh = this.#fresh.as('stale', reason);
  }

  /** What is held is wrong, or may not be shown. The next connection asks for a whole book. */
  forget() {
    if (this.#untaken) this.#missed++;
    this.#untaken = false;
    this.#bids = new Map();
    this.#asks = new Map();
    this.#sides = undefined;
    this.#epoch = this.#seq = null;
    const { source, reason } = this.#fresh;
    this.#fresh = new Freshness({ status: 'stale', source, reason: reason ?? 'gap', age_ms: null });
  }

  /** Takes a message; whether the book or its freshness changed. Gap, or BadAnswer for what is no message. */
  apply(e) {
    if (!['heartbeat', 'status', 'snapshot', 'update'].includes(e.type)) return false; // of a newer gateway, or its farewell
    try {
      const d = readEvent(e), late = this.#late(d, e.at);
      if (e.type === 'heartbeat') return this.#prove();
      if (e.type === 'status') return this.#status(d);
      this.#version(e.type, d);
      const status = string(d, 'status');
      this.#fresh = this.#freshness(d, status, status === 'live' ? null : this.#fresh.reason ?? status, e.at - late);
      this.#promised = status === 'live';
      this.progress = true;
      return true;
    } catch (err) {
      if (err instanceof Gap) throw err;
      this.forget();
      throw err instanceof Wrong ? unreadable(err) : err;
    }
  }

  #status(d) {
    const status = string(d, 'status');
    this.#promised = status === 'live';
    if (this.#promised) return false; // live already, or not proven
    if (status === 'withheld') this.forget();
    const reason = maybeString(d, 'reason') ?? status;
    const changed = this.#fresh.status !== status || this.#fresh.reason !== reason;
    this.#fresh = this.#fresh.as(status, reason);
    return changed;
  }

  #prove() {
    if (!this.#promised || this.#seq === null || !this.#fresh.stale) return false;
    this.#fresh = this.#fresh.as('live', null);
    return true;
  }

  /**
   * How long a message lay in buffers before it was read, in ms: what it took beyond the quickest of its connection, whatever the
   * two clocks say. Little of it is the network's. It is read late if the event loop was blocked or the process paused.
   */
  #late(d, at) {
    const sent = Date.parse(text(d.sent_at) ?? '');
    if (Number.isNaN(sent)) return 0;
    this.#quickest = Math.min(this.#quickest, at - sent);
    const late = at - sent - this.#quickest;
    return late > MAX_LATE ? late : 0;
  }

  #freshness(d, status, reason, received) {
    const has = d.confirmed_at !== null && d.confirmed_at !== undefined;
    const age = has ? Math.max(0, moment(d, 'sent_at') - moment(d, 'confirmed_at')) : null; // one clock, so no skew
    return new Freshness({ status, reason, source: 'stream', confirmed_at: d.confirmed_at, changed_at: d.changed_at, age_ms: age }, received);
  }

  #version(type, d) {
    const epoch = string(d, 'epoch'), seq = integer(d, 'seq');
    const told = [[this.#bids, levels(d, 'bids')], [this.#asks, levels(d, 'asks')]];
    if (type === 'snapshot') {
      this.#bids.clear();
      this.#asks.clear();
    } else if (this.#seq === null || epoch !== this.#epoch || d.prev_seq !== this.#seq) {
      throw new Gap();
    }
    for (const [side, rows] of told) {
      for (const level of rows) {
        const price = canonical(parts(level[0]));
        if (canonical(parts(level[1])) === '0') side.delete(price);
        else side.set(price, level);
      }
    }
    this.#sides = undefined;
    const { bids: [bid], asks: [ask] } = this.#sort();
    if (Math.max(this.#bids.size, this.#asks.size) > this.#depth || (bid && ask && compareNumbers(bid[0], ask[0]) >= 0)) {
      throw new Gap(); // no book looks like this: something was missed
    }
    this.#missed += (this.#untaken ? 1 : 0) + (count(d.conflated) ?? 0);
    this.#untaken = true;
    this.#epoch = epoch;
    this.#seq = seq;
    this.#names = { exchange: string(d, 'exchange'), symbol: string(d, 'symbol'), exchange_symbol: string(d, 'exchange_symbol') };
    this.#complete = flag(d, 'complete');
    this.#nonce = sequence(d.exchange_seq);
    this.#time = maybeString(d, 'exchange_time');
  }

  #sort() {
    this.#sides ??= {
      bids: [...this.#bids.values()].sort((a, b) => compareNumbers(b[0], a[0])),
      asks: [...this.#asks.values()].sort((a, b) => compareNumbers(a[0], b[0])),
    };
    return this.#sides;
  }

  /** The book as it is now, for the consumer. */
  take() {
    const { bids, asks } = this.#sort(), missed = this.#missed;
    this.#missed = 0;
    this.#untaken = false;
    return new OrderBook({
      ...this.#names, market_status: null, market_status_at: null, stale: this.#fresh.stale, freshness: this.#fresh, depth: this.#depth,
      complete: this.#complete && this.#seq !== null, timestamp: this.#time === null ? null : Date.parse(this.#time), datetime: this.#time,
      nonce: this.#nonce, bids: bids.slice(), asks: asks.slice(), epoch: this.#epoch, seq: this.#seq, missed,
    });
  }
}
