// Types of exchange-gateway.js. Prices, sizes and amounts are text with the exchange's digits; times are RFC 3339 in UTC or,
// as `timestamp`, milliseconds since 1970; durations are milliseconds.

export const VERSION: string;

/** Text of a decimal number: "64073.10". */
export type Numeric = string;

/** Every code that an error can have; a newer gateway may have others. */
export type ErrorCode =
  | 'invalid_parameter'
  | 'unknown_parameter'
  | 'account_ambiguous'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'exchange_unknown'
  | 'symbol_unknown'
  | 'symbol_delisted'
  | 'account_unknown'
  | 'book_not_held'
  | 'method_not_allowed'
  | 'refused'
  | 'body_too_large'
  | 'uri_too_long'
  | 'unsupported_media_type'
  | 'upgrade_required'
  | 'client_rate_limited'
  | 'header_too_large'
  | 'internal'
  | 'no_accounts'
  | 'not_supported'
  | 'exchange_auth_failed'
  | 'clock_skew'
  | 'exchange_restricted'
  | 'upstream_error'
  | 'upstream_bad_response'
  | 'upstream_rate_limited'
  | 'upstream_banned'
  | 'exchange_maintenance'
  | 'circuit_open'
  | 'isolated'
  | 'withheld'
  | 'book_too_stale'
  | 'not_live'
  | 'markets_unavailable'
  | 'books_unavailable'
  | 'price_unavailable'
  | 'book_one_sided'
  | 'action_incomplete'
  | 'overloaded'
  | 'local_resource'
  | 'shutting_down'
  | 'upstream_timeout'
  | 'gateway_unreachable'
  | 'gateway_timeout'
  | 'bad_answer';

/** An answer that is a problem (RFC 9457), or none at all. */
export class GatewayError extends Error {
  constructor(detail: string, problem?: Record<string, unknown>, more?: { code?: string; status?: number; retryable?: boolean; retryAfterMs?: number; cause?: unknown });
  /** A sentence. */
  readonly detail: string;
  /** Stable; GET /v1/errors says what each means. */
  readonly code: ErrorCode | (string & {});
  /** Of HTTP; null where there was no answer, or the problem is one of several in an answer. */
  readonly status: number | null;
  /** The class that ccxt would raise. */
  readonly ccxtClass: string;
  /** Who failed. */
  readonly origin: 'gateway' | 'exchange' | (string & {}) | null;
  readonly exchange: string | null;
  /** The same request can succeed later. */
  readonly retryable: boolean;
  /** How long until then, null if it is not known or of no use. */
  readonly retryAfterMs: number | null;
  readonly circuit: string | null;
  /** What the exchange did, a kind such as "timeout". */
  readonly reason: string | null;
  /** Of the copy that was too old. */
  readonly ageMs: number | null;
  /** What the gateway's log knows it by. */
  readonly requestId: string | null;
  /** The parameter at fault, and what could stand in its place. */
  readonly parameter: string | null;
  readonly allowed: readonly string[];
  /** Why each exchange did not answer. */
  readonly venues: Readonly<Record<string, GatewayError>>;
  /** The document as it came. */
  readonly problem: Readonly<Record<string, unknown>>;
}
/** A parameter is missing, malformed or out of range. */
export class InvalidParameter extends GatewayError { readonly code: 'invalid_parameter' }
/** The route has no such parameter. */
export class UnknownParameter extends GatewayError { readonly code: 'unknown_parameter' }
/** Several accounts fit and none was named. */
export class AccountAmbiguous extends GatewayError { readonly code: 'account_ambiguous' }
/** No key of this gateway, or one that is not valid. */
export class Unauthenticated extends GatewayError { readonly code: 'unauthenticated' }
/** The key lacks the scope. */
export class Forbidden extends GatewayError { readonly code: 'forbidden' }
/** The gateway has nothing at this path. */
export class NotFound extends GatewayError { readonly code: 'not_found' }
/** No exchange of this name is enabled. */
export class ExchangeUnknown extends GatewayError { readonly code: 'exchange_unknown' }
/** The exchange does not list this pair. */
export class SymbolUnknown extends GatewayError { readonly code: 'symbol_unknown' }
/** The exchange does not list this pair any more. */
export class SymbolDelisted extends GatewayError { readonly code: 'symbol_delisted' }
/** No account of this name is configured. */
export class AccountUnknown extends GatewayError { readonly code: 'account_unknown' }
/** The gateway holds no book of this pair yet: ask for its order book or ticker once. */
export class BookNotHeld extends GatewayError { readonly code: 'book_not_held' }
/** The route does not answer this method. */
export class MethodNotAllowed extends GatewayError { readonly code: 'method_not_allowed' }
/** An operator's action cannot be carried out now. */
export class Refused extends GatewayError { readonly code: 'refused' }
/** The request carries too large a body. */
export class BodyTooLarge extends GatewayError { readonly code: 'body_too_large' }
/** The request's target is over 8 KiB. */
export class URITooLong extends GatewayError { readonly code: 'uri_too_long' }
/** The body of an action has to be JSON. */
export class UnsupportedMediaType extends GatewayError { readonly code: 'unsupported_media_type' }
/** The route speaks WebSocket. */
export class UpgradeRequired extends GatewayError { readonly code: 'upgrade_required' }
/** This client has used up its own quota. */
export class ClientRateLimited extends GatewayError { readonly code: 'client_rate_limited' }
/** The request's headers are over 16 KiB. */
export class HeaderTooLarge extends GatewayError { readonly code: 'header_too_large' }
/** The gateway has a bug: report it with the request id. */
export class Internal extends GatewayError { readonly code: 'internal' }
/** The gateway has no credential of this exchange. */
export class NoAccounts extends GatewayError { readonly code: 'no_accounts' }
/** The exchange, or this gateway, has no such thing. */
export class ExchangeNotSupported extends GatewayError { readonly code: 'not_supported' }
/** The exchange refused the gateway's credential, not the caller's key. */
export class ExchangeAuthFailed extends GatewayError { readonly code: 'exchange_auth_failed' }
/** The exchange refused the gateway's clock. */
export class ClockSkew extends GatewayError { readonly code: 'clock_skew' }
/** The exchange does not serve the place on earth from which the gateway asks. */
export class ExchangeRestricted extends GatewayError { readonly code: 'exchange_restricted' }
/** The exchange could not be reached, or answered with a server error. */
export class UpstreamError extends GatewayError { readonly code: 'upstream_error' }
/** The exchange's answer could not be decoded, or was a book that cannot be true or a balance out of a cache. */
export class UpstreamBadResponse extends GatewayError { readonly code: 'upstream_bad_response' }
/** The exchange asked the gateway to slow down. */
export class UpstreamRateLimited extends GatewayError { readonly code: 'upstream_rate_limited' }
/** The exchange shut the gateway's address out for a while. */
export class UpstreamBanned extends GatewayError { readonly code: 'upstream_banned' }
/** The exchange says that it is closed. */
export class ExchangeMaintenance extends GatewayError { readonly code: 'exchange_maintenance' }
/** The exchange kept failing, so it was not asked. */
export class CircuitOpen extends GatewayError { readonly code: 'circuit_open' }
/** An operator isolated the exchange. */
export class Isolated extends GatewayError { readonly code: 'isolated' }
/** An operator withholds answers of this exchange, also old ones. */
export class Withheld extends GatewayError { readonly code: 'withheld' }
/** No copy of the book is as young as the caller or the policy asks; `ageMs` is that of the one there is. */
export class BookTooStale extends GatewayError { readonly code: 'book_too_stale' }
/** `requireLive`, and only a stale copy exists. */
export class NotLive extends GatewayError { readonly code: 'not_live' }
/** The gateway has no list of the exchange's pairs yet. */
export class MarketsUnavailable extends GatewayError { readonly code: 'markets_unavailable' }
/** No exchange has a book of this pair; `venues` says why. */
export class BooksUnavailable extends GatewayError { readonly code: 'books_unavailable' }
/** No exchange that was asked can answer; `venues` says why. */
export class PriceUnavailable extends GatewayError { readonly code: 'price_unavailable' }
/** One side of the book is empty, so there is no mid. */
export class BookOneSided extends GatewayError { readonly code: 'book_one_sided' }
/** A part of an operator's action did not work. */
export class ActionIncomplete extends GatewayError { readonly code: 'action_incomplete' }
/** The gateway's own bound is reached. */
export class Overloaded extends GatewayError { readonly code: 'overloaded' }
/** The gateway's machine had nothing left for a connection to the exchange. */
export class LocalResource extends GatewayError { readonly code: 'local_resource' }
/** This gateway is stopping. */
export class ShuttingDown extends GatewayError { readonly code: 'shutting_down' }
/** The exchange did not answer before the deadline. */
export class UpstreamTimeout extends GatewayError { readonly code: 'upstream_timeout' }
/** The gateway itself was not reached, or the connection to it broke. Of this client alone: no answer has this code. */
export class GatewayUnreachable extends GatewayError { readonly code: 'gateway_unreachable' }
/** The gateway did not answer within `timeout`. Of this client alone. */
export class GatewayTimeout extends GatewayError { readonly code: 'gateway_timeout' }
/** What answered was not the gateway as it is documented. Of this client alone. */
export class BadAnswer extends GatewayError { readonly code: 'bad_answer' }

/** Compares two numbers exactly: below 0, 0 or above 0, as Array.prototype.sort wants it. */
export function compareNumbers(a: Numeric, b: Numeric): number;

/** How far an answer can be trusted. */
export class Freshness {
  private constructor();
  /** "live", or why not: "stale", and of streams "syncing" and "withheld". */
  readonly status: 'live' | 'stale' | 'syncing' | 'withheld' | (string & {});
  /** "stream", "rest", "memory" or "redis". */
  readonly source: string;
  /** Why it is not live: a kind of error, "not_asked", or of streams what this client saw ("disconnected"). */
  readonly reason: string | null;
  readonly circuit: string | null;
  /** When the exchange last vouched for it, by the gateway's clock. */
  readonly confirmed_at: string | null;
  readonly changed_at: string | null;
  readonly exchange_lag_ms: number | null;
  /** What the answer said; null for a stream that has no book yet. */
  readonly age_ms: number | null;
  /** What the gateway said. */
  get stale(): boolean;
  /** Since the exchange vouched for it: as the answer said, and on from when it came; of streams with the time that it lay unread. null: nobody ever did. */
  get ageMs(): number | null;
  /** Whether it is older than that now. */
  olderThan(ms: number): boolean;
}

export type Level = readonly [price: Numeric, size: Numeric];

/** One book: bids from the highest price down, asks from the lowest up. */
export class OrderBook {
  private constructor();
  readonly exchange: string;
  readonly symbol: string;
  readonly exchange_symbol: string;
  /** Set if the pair does not trade as usual. */
  readonly market_status: string | null;
  /** When the exchange said so. */
  readonly market_status_at: string | null;
  readonly stale: boolean;
  readonly freshness: Freshness;
  /** Levels a side at most. */
  readonly depth: number;
  /** No level of that depth is missing. */
  readonly complete: boolean;
  /** The exchange's own time of it. */
  readonly timestamp: number | null;
  readonly datetime: string | null;
  /** The exchange's own sequence; null also where it is no safe integer. */
  readonly nonce: number | null;
  readonly bids: readonly Level[];
  readonly asks: readonly Level[];
  /** Of streams: with seq the name of this version. */
  readonly epoch: string | null;
  readonly seq: number | null;
  /** Of streams: how many versions this loop did not get between the book before and this one. null for other answers. */
  readonly missed: number | null;
  /** Half way between the best bid and the best ask, exactly; null for a book with one side. */
  get mid(): Numeric | null;
  /** Best ask less best bid, exactly; null for a book with one side. */
  get spread(): Numeric | null;
}

export interface Ticker {
  readonly exchange: string;
  readonly symbol: string;
  readonly exchange_symbol: string;
  readonly market_status: string | null;
  readonly market_status_at: string | null;
  readonly stale: boolean;
  readonly freshness: Freshness;
  readonly timestamp: number | null;
  readonly datetime: string | null;
  readonly bid: Numeric | null;
  readonly bidVolume: Numeric | null;
  readonly ask: Numeric | null;
  readonly askVolume: Numeric | null;
  readonly mid: Numeric | null;
  readonly spread: Numeric | null;
  readonly last: Numeric | null;
  readonly open: Numeric | null;
  readonly high: Numeric | null;
  readonly low: Numeric | null;
  readonly change: Numeric | null;
  readonly percentage: Numeric | null;
  readonly baseVolume: Numeric | null;
  readonly quoteVolume: Numeric | null;
  /** Of the figures of 24 hours; null where there are none. */
  readonly stats_freshness: Freshness | null;
  /** Why there are none, or why they are stale. */
  readonly stats_reason: string | null;
}

export interface Tickers {
  readonly exchange: string;
  readonly tickers: Readonly<Record<string, Ticker>>;
  /** By symbol. */
  readonly problems: Readonly<Record<string, GatewayError>>;
}

export interface Best {
  readonly exchange: string;
  readonly price: Numeric;
  readonly size: Numeric;
}

export interface OrderBooks {
  readonly symbol: string;
  /** Over the live books. */
  readonly best_bid: Best | null;
  readonly best_ask: Best | null;
  /** By exchange. */
  readonly books: Readonly<Record<string, OrderBook>>;
  readonly problems: Readonly<Record<string, GatewayError>>;
}

export interface Price {
  readonly symbol: string;
  readonly exchange: string;
  readonly mid: Numeric;
  readonly bid: Numeric | null;
  readonly bidVolume: Numeric | null;
  readonly ask: Numeric | null;
  readonly askVolume: Numeric | null;
  /** It is not the first that was asked. */
  readonly fallback: boolean;
  readonly stale: boolean;
  readonly freshness: Freshness;
  /** Why those before it did not answer. */
  readonly passed: Readonly<Record<string, GatewayError>>;
}

export interface Market {
  readonly symbol: string;
  readonly exchange_symbol: string;
  readonly base: string;
  readonly quote: string;
  readonly status: string;
  readonly active: boolean;
  readonly tick: Numeric | null;
  readonly lot: Numeric | null;
  readonly min_size: Numeric | null;
  readonly min_notional: Numeric | null;
  readonly alias_of: string | null;
}

export interface Markets {
  readonly exchange: string;
  readonly stale: boolean;
  readonly freshness: Freshness;
  readonly markets: readonly Market[];
}

/** What an exchange announces; the rest of the document is how the gateway finds it. */
export interface Status {
  readonly exchange: string;
  readonly status: string;
  readonly updated: number | null;
  readonly eta: number | null;
  readonly info: { readonly message: string | null; readonly reason: string | null };
  readonly [more: string]: unknown;
}

/** Balances were live when they came, and they are of no use later: there is no old balance. */
export interface Balance {
  readonly exchange: string;
  readonly account: string;
  readonly account_type: string;
  /** By asset. total is less what is owed, so it can be negative; debt is null where nothing is owed. */
  readonly balances: Readonly<Record<string, {
    readonly free: Numeric; readonly used: Numeric; readonly total: Numeric; readonly debt: Numeric | null;
  }>>;
  readonly requested_at: string;
  readonly received_at: string;
  readonly timestamp: number | null;
}

export interface Exchanges {
  readonly exchanges: readonly {
    readonly exchange: string;
    readonly has: Readonly<Record<string, boolean>>;
    readonly wallets: readonly string[];
    readonly circuits: Readonly<Record<string, string>>;
  }[];
  readonly degraded: readonly string[];
}

export interface CatalogueEntry {
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly ccxt_class: string;
  readonly origin: string;
  readonly retryable: boolean;
  readonly meaning: string;
  readonly action: string;
}

/** What every method takes. */
export interface CallOptions {
  /** Ends it; the promise then rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface AgeOptions extends CallOptions {
  /** The age that you accept: BookTooStale beyond it. */
  maxAgeMs?: number;
}

export interface BookOptions extends AgeOptions {
  /** Levels a side, 1 to 1000. */
  depth?: number;
  /** NotLive instead of a stale answer. */
  requireLive?: boolean;
}

export interface WatchOptions extends CallOptions {
  depth?: 1 | 5 | 20 | 50 | 100 | 400;
  /** A book at least so often, also when nothing changes. */
  everyMs?: number;
  /** Without a message, after which the connection counts as lost. The gateway sends one each 15 s. */
  silenceMs?: number;
}

export interface GatewayOptions {
  /** gw_...; needed for balances, and beyond loopback for everything. */
  key?: string;
  /** For one request, connecting and reading included. Default 10,000. */
  timeoutMs?: number;
  /** Another than the global one. */
  fetch?: typeof globalThis.fetch;
}

/** A gateway, by its address. Methods reject with a GatewayError, or with the reason of the caller's own signal. */
export class Gateway {
  constructor(baseURL?: string | URL, options?: GatewayOptions);
  exchanges(options?: CallOptions): Promise<Exchanges>;
  orderBook(exchange: string, symbol: string, options?: BookOptions): Promise<OrderBook>;
  ticker(exchange: string, symbol: string, options?: AgeOptions & { requireLive?: boolean }): Promise<Ticker>;
  /** Up to 50, from books that the gateway holds already, of whatever age; it asks no exchange. */
  tickers(exchange: string, symbols: readonly string[], options?: CallOptions): Promise<Tickers>;
  markets(exchange: string, options?: CallOptions): Promise<Markets>;
  status(exchange: string, options?: CallOptions): Promise<Status>;
  /** Live or an error. Needs a key with account:read; account may be left out if exactly one fits. */
  balance(exchange: string, options?: CallOptions & { account?: string; wallet?: 'trading' | 'funding' }): Promise<Balance>;
  orderBooks(symbol: string, options?: AgeOptions & { depth?: number }): Promise<OrderBooks>;
  price(symbol: string, options?: AgeOptions & { exchanges?: readonly string[] }): Promise<Price>;
  circuits(options?: CallOptions): Promise<Record<string, unknown>>;
  errors(options?: CallOptions): Promise<readonly CatalogueEntry[]>;
  /** The contract of the HTTP API, OpenAPI 3.1. */
  openapi(options?: CallOptions): Promise<Record<string, unknown>>;
  /** What is degraded, empty if nothing. Rejects while the gateway takes no requests. */
  ready(options?: CallOptions): Promise<readonly string[]>;
  /** Resolves if the process answers. */
  live(options?: CallOptions): Promise<void>;
  /**
   * The book as it changes, for ever, and at once when it is not live any more; see exchange-gateway.js. It is read all the time: a
   * slow loop misses versions, not the newest one. return() ends it at once, also while next() waits.
   */
  watchOrderBook(exchange: string, symbol: string, options?: WatchOptions): AsyncGenerator<OrderBook, never, void>;
  /** What operators see, as it changes, until the connection ends. Nothing is left out: a slow loop gets each late. */
  watchCircuits(options?: CallOptions & { silenceMs?: number }): AsyncGenerator<{ type: 'snapshot' | 'event' | 'state' | (string & {}); data: Record<string, unknown> }, never, void>;
}
