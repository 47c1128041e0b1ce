// What a program in TypeScript writes against the client, checked by the compiler alone: a line that must not compile says so.
import {
  BookTooStale, CircuitOpen, Gateway, GatewayError, compareNumbers, type Balance, type Freshness, type Level, type OrderBook, type Ticker,
} from '../exchange-gateway.js';

export async function reads(signal: AbortSignal): Promise<void> {
  const gw = new Gateway(new URL('http://127.0.0.1:8080'), { key: 'gw_example', timeoutMs: 5000 });
  const book: OrderBook = await gw.orderBook('okx', 'BTC/USDT', { depth: 5, maxAgeMs: 2000, requireLive: true, signal });
  const best: Level | undefined = book.bids[0];
  const fresh: Freshness = book.freshness;
  const age: number | null = fresh.ageMs;
  const ticker: Ticker = await gw.ticker('okx', 'BTC/USDT', { maxAgeMs: 0 });
  const balance: Balance = await gw.balance('okx', { wallet: 'funding' });
  const order: number = compareNumbers(best?.[0] ?? '0', ticker.bid ?? '0');
  console.log(age, balance.balances['BTC']?.free, order, (await gw.price('BTC/USDT', { exchanges: ['okx'] })).passed['okx']?.code);

  // @ts-expect-error a price is text: arithmetic on it would lose digits
  console.log(book.bids[0]![0] * 2);
  // @ts-expect-error a parameter that does not exist
  await gw.orderBook('okx', 'BTC/USDT', { max_age_ms: 5 });
  // @ts-expect-error a key alone is no options
  new Gateway('http://127.0.0.1:8080', 'gw_example');
  // @ts-expect-error no such wallet
  await gw.balance('okx', { wallet: 'margin' });
  // @ts-expect-error no such depth of a stream
  gw.watchOrderBook('okx', 'BTC/USDT', { depth: 7 });
  // @ts-expect-error an answer is nobody's to change
  book.stale = false;
}

export async function watches(gw: Gateway): Promise<string | null> {
  try {
    for await (const book of gw.watchOrderBook('okx', 'BTC/USDT', { depth: 5, everyMs: 1000, silenceMs: 20_000 })) {
      if (!book.stale) return book.mid;
    }
  } catch (err) {
    if (err instanceof BookTooStale) return `${err.ageMs}`;
    if (err instanceof CircuitOpen) {
      const code: 'circuit_open' = err.code;
      return `${code} ${err.retryAfterMs}`;
    }
    if (err instanceof GatewayError) return err.ccxtClass;
    throw err;
  }
  return null;
}
