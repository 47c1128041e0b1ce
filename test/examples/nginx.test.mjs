// examples/nginx: Debian's nginx with the file as it is, but for its port, its name's certificate and where the gateway listens, in
// front of the demo. Over TLS: requests, server-sent events and a WebSocket; and whom the gateway takes its callers for.
import { describe, it, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import https from 'node:https';
import { demo, example, later, run, start, tidy, until } from './stage.mjs';

const WebSocket = createRequire(example('ccxt', 'watch.mjs'))('ws');
const name = 'gateway.example.com';

const freePort = () => new Promise((resolve, reject) => {
  const s = createServer().on('error', reject).listen(0, '127.0.0.1', () => {
    const { port } = s.address();
    s.close(() => resolve(port));
  });
});

describe('nginx', () => {
  let gateway, port, ca, nginx;

  // ask sends a request to nginx by its name, from an address of this machine's loopback.
  const ask = (path, { headers = {}, from = '127.0.0.1', until: enough } = {}) => new Promise((resolve, reject) => {
    const req = https.get({ host: '127.0.0.1', port, servername: name, ca, path, localAddress: from, headers: { Host: `${name}:${port}`, ...headers } }, (res) => {
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (part) => {
        text += part;
        if (enough?.(text)) res.destroy();
      });
      res.on('close', () => resolve({ status: res.statusCode, headers: res.headers, text }));
    });
    req.setTimeout(30_000, () => req.destroy(new Error('no answer within 30 s'))).on('error', reject);
  });
  const withKey = () => ({ Authorization: `Bearer ${gateway.key}` });
  const book = '/v1/exchanges/okx/orderbook?symbol=BTC/USDT&depth=1';

  after(tidy);
  before(async () => {
    gateway = await demo({ settings: ['trusted_proxies=127.0.0.1'], log: 'info' });
    await gateway.live('okx', 'BTC/USDT', withKey());
    port = await freePort();
    const at = (file) => join(gateway.dir, file);
    await run('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', `/CN=${name}`,
      '-addext', `subjectAltName=DNS:${name}`, '-keyout', at('gateway.key'), '-out', at('gateway.crt')]);
    ca = await readFile(at('gateway.crt'));
    const site = (await readFile(example('nginx', 'gateway.conf'), 'utf8'))
      .replace('server 127.0.0.1:8080;', `server ${new URL(gateway.public).host};`)
      .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`)
      .replaceAll('/etc/nginx/gateway.', `${gateway.dir}/gateway.`);
    await writeFile(at('site.conf'), site);
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((n) => `${n}_temp_path ${at(n)};`).join(' ');
    await writeFile(at('nginx.conf'), `daemon off; master_process off; pid ${at('nginx.pid')}; error_log stderr warn;
      events {} http { access_log off; ${temporary} include ${at('site.conf')}; }`);
    // Debian has it where only root looks.
    const options = { env: { PATH: `${process.env.PATH}:/usr/sbin` } };
    const args = ['-p', gateway.dir, '-c', at('nginx.conf')];
    await run('nginx', ['-t', '-q', ...args], options);
    nginx = start('nginx', args, options);
    later(() => nginx.stop());
    await until('nginx listens', () => ask('/livez').then(() => true, () => false));
  });

  it('says nothing that matters while it starts', () => assert.equal(nginx.text, ''));

  it('passes requests on, to who has a key', async () => {
    const got = await ask(book, { headers: withKey() });
    assert.equal(got.status, 200, got.text);
    assert.equal(JSON.parse(got.text).stale, false);
    assert.match(got.headers['cache-status'], /^exchange-gateway; /);
    const nobody = await ask(book);
    assert.equal(nobody.status, 401, 'through nginx the whole world comes from loopback: without a key there is nothing');
    assert.equal(JSON.parse(nobody.text).code, 'unauthenticated');
  });

  it('tells the gateway who asks, whatever the client says of itself', async () => {
    const lost = await ask('/v1/nothing', { from: '127.0.0.9', headers: { 'X-Forwarded-For': '192.0.2.7' } });
    assert.equal(lost.status, 404);
    const id = lost.headers['x-request-id'];
    const line = await until('the line of the request', () => gateway.log().split('\n').find((l) => l.includes(id)));
    assert.match(line, /\baddress=127\.0\.0\.9\b/);
    assert.doesNotMatch(gateway.log(), /192\.0\.2\.7/);
  });

  it('passes events on as they come', async () => {
    const began = Date.now();
    const updates = (text) => text.match(/^event: (snapshot|update)$/gm)?.length ?? 0;
    const got = await ask('/v1/stream/orderbook?exchange=okx&symbol=BTC/USDT&depth=1', { headers: withKey(), until: (text) => updates(text) >= 3 });
    assert.equal(got.status, 200);
    assert.match(got.headers['content-type'], /^text\/event-stream/);
    assert.ok(updates(got.text) >= 3, got.text);
    assert.ok(Date.now() - began < 15_000, 'a buffer would have held them back');
  });

  it('passes a WebSocket on, also to a page of its own', async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/stream`, {
      servername: name, ca, origin: `https://${name}:${port}`, headers: { Host: `${name}:${port}`, ...withKey() },
    });
    try {
      await once(socket, 'open', { signal: AbortSignal.timeout(20_000) });
      socket.send(JSON.stringify({ op: 'subscribe', channel: 'orderbook', exchange: 'okx', symbols: ['BTC/USDT'], depth: 5 }));
      const types = new Set();
      await new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`only ${[...types]} within 20 s`)), 20_000);
        socket.on('message', (data) => {
          types.add(JSON.parse(data).type);
          if (types.has('snapshot') && types.has('update')) { clearTimeout(late); resolve(); }
        });
        socket.on('error', reject);
      });
      assert.ok(types.has('status'));
    } finally {
      socket.terminate();
    }
  });

  it('refuses a page of another origin', async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/stream`, { servername: name, ca, origin: 'https://elsewhere.example', headers: { Host: `${name}:${port}`, ...withKey() } });
    socket.on('error', () => {}); // what it says is in the answer
    const [, res] = await once(socket, 'unexpected-response', { signal: AbortSignal.timeout(20_000) });
    assert.equal(res.statusCode, 403);
    socket.terminate();
  });

  it('refuses what is too large itself', async () => {
    assert.ok([413, 414, 431, 400].includes((await ask(`/v1/exchanges?${'a'.repeat(20_000)}`)).status));
  });

  it('passes an error on as it is', async () => {
    const got = await ask('/v1/exchanges/okx/orderbook?symbol=NO/SUCH', { headers: withKey() });
    assert.equal(got.status, 404);
    assert.equal(JSON.parse(got.text).code, 'symbol_unknown');
    assert.match(got.headers['content-type'], /^application\/problem\+json/);
  });
});
