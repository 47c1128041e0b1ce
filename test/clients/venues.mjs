// The simulated exchanges that `run` started over TLS, and a ccxt client of each with nothing changed but URLs, keys and
// ccxt's own options. lib is ccxt, or ccxt.pro for the classes that stream; without a key's name a client has none.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ccxt from 'ccxt';

const read = (name) => JSON.parse(readFileSync(join(process.env.EXCHANGESIM_DIR, name), 'utf8'));
const urls = read('ready.json');
const keys = read('keys.json');
const streams = (venue) => urls[venue].replace(/^http/, 'ws');

export async function control(method, path, body) {
  const res = await fetch(urls.control + path, { method, body: body && JSON.stringify(body) });
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
  return res.json();
}

export const inject = (venue, fault) => control('POST', `/v1/faults/${venue}`, fault);

// exactly is for assert.rejects: the class itself, not one above it.
export const exactly = (kind) => (err) => {
  assert.equal(err.constructor.name, kind.name, err.message);
  return true;
};

// numbers are levels of the simulator's as ccxt has them.
export const numbers = (levels) => levels.map(({ price, size }) => [Number(price), Number(size)]);

function credentials(name) {
  if (name === undefined) return {};
  const key = keys.find((k) => k.name === name);
  return { apiKey: key.key, secret: key.secret, password: key.passphrase };
}

export function binance(keyName, lib = ccxt) {
  const client = new lib.binance({
    ...credentials(keyName),
    options: {
      defaultType: 'spot', fetchMarkets: { types: ['spot'] }, fetchCurrencies: false, fetchMargins: false,
      watchTickers: { name: 'ticker' }, // watchTicker goes by this option; its default has neither bid nor ask
    },
  });
  Object.assign(client.urls.api, {
    public: `${urls.binance}/api/v3`, private: `${urls.binance}/api/v3`, sapi: `${urls.binance}/sapi/v1`,
  });
  if (lib === ccxt.pro) client.urls.api.ws.spot = `${streams('binance')}/ws`;
  return client;
}

export function okx(keyName, lib = ccxt) {
  const client = new lib.okx({
    ...credentials(keyName), options: { defaultType: 'spot', fetchMarkets: { types: ['spot'] } },
  });
  client.has.fetchCurrencies = false;
  client.urls.api.rest = urls.okx;
  client.urls.api.ws = `${streams('okx')}/ws/v5`;
  return client;
}

export function coinbase(keyName, lib = ccxt) {
  const client = new lib.coinbase({
    ...credentials(keyName), options: { defaultType: 'spot', fetchBalance: 'v3PrivateGetBrokerageAccounts' },
  });
  client.has.fetchCurrencies = false;
  client.urls.api.rest = urls.coinbase;
  client.urls.api.ws = streams('coinbase');
  return client;
}

export { ccxt };
