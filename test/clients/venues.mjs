// The simulated exchanges that `run` started over TLS, and a ccxt client of each with nothing changed but URLs, keys and
// ccxt's own options.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ccxt from 'ccxt';

const read = (name) => JSON.parse(readFileSync(join(process.env.EXCHANGESIM_DIR, name), 'utf8'));
const urls = read('ready.json');
const keys = read('keys.json');

export async function control(method, path, body) {
  const res = await fetch(urls.control + path, { method, body: body && JSON.stringify(body) });
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
  return res.json();
}

export const inject = (venue, fault) => control('POST', `/v1/faults/${venue}`, fault);

function credentials(name) {
  const key = keys.find((k) => k.name === name);
  return { apiKey: key.key, secret: key.secret, password: key.passphrase };
}

export function binance(keyName) {
  const client = new ccxt.binance({
    ...credentials(keyName),
    options: { defaultType: 'spot', fetchMarkets: { types: ['spot'] }, fetchCurrencies: false, fetchMargins: false },
  });
  Object.assign(client.urls.api, {
    public: `${urls.binance}/api/v3`, private: `${urls.binance}/api/v3`, sapi: `${urls.binance}/sapi/v1`,
  });
  return client;
}

export function okx(keyName) {
  const client = new ccxt.okx({
    ...credentials(keyName), options: { defaultType: 'spot', fetchMarkets: { types: ['spot'] } },
  });
  client.has.fetchCurrencies = false;
  client.urls.api.rest = urls.okx;
  return client;
}

export function coinbase(keyName) {
  const client = new ccxt.coinbase({
    ...credentials(keyName), options: { defaultType: 'spot', fetchBalance: 'v3PrivateGetBrokerageAccounts' },
  });
  client.has.fetchCurrencies = false;
  client.urls.api.rest = urls.coinbase;
  return client;
}

export { ccxt };
