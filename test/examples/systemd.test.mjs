// examples/systemd: systemd takes the unit as it is and with its optional lines, its sandbox is tight, and the gateway takes the
// settings that it sets.
import { describe, it, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { example, root, run, start } from './stage.mjs';

const gateway = join(root, 'bin', 'gateway');

describe('systemd', () => {
  let dir, unit, full;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'exchange-gateway-systemd-'));
    const text = await readFile(example('systemd', 'exchange-gateway.service'), 'utf8');
    unit = text.replaceAll('/usr/local/bin/gateway', gateway);
    full = unit.replace(/^#(Environment|LoadCredential)=/gm, '$1=');
    assert.notEqual(full, unit);
  });
  after(() => rm(dir, { recursive: true, force: true }));

  const verify = async (text) => {
    const file = join(dir, 'exchange-gateway.service');
    await writeFile(file, text);
    const it = start('systemd-analyze', ['verify', '--man=no', file]);
    const code = await it.ended;
    return { code, text: it.text, file };
  };

  it('verifies', async () => {
    for (const text of [unit, full]) {
      const got = await verify(text);
      assert.equal(got.text, '');
      assert.equal(got.code, 0);
    }
    const wrong = await verify(unit.replace('ProtectHome=', 'ProtectHouse='));
    assert.match(wrong.text, /ProtectHouse/, 'a mistyped line would be told');
  });

  it('exposes little', async () => {
    const { file } = await verify(unit);
    const text = await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
    assert.match(text, /Overall exposure level .* OK/);
  });

  it('sets what the gateway knows', async () => {
    const env = {};
    for (const [, name, value] of full.matchAll(/^Environment=(\w+)=(.*)$/gm)) env[name] = value;
    assert.ok(Object.keys(env).length >= 5, Object.keys(env).join());
    const loaded = [...full.matchAll(/^LoadCredential=(\w+):/gm)].map((m) => m[1]);
    for (const [name, value] of Object.entries(env)) {
      if (!value.startsWith('%d/')) continue;
      assert.ok(loaded.includes(value.slice(3)), `${name} is loaded`);
      env[name] = join(dir, value.slice(3));
      await writeFile(env[name], 'example\n', { mode: 0o600 });
    }
    env.GATEWAY_CONFIG = join(dir, 'gateway.yaml');
    await writeFile(env.GATEWAY_CONFIG, 'listen: 127.0.0.1:8080\n');
    env.GATEWAY_STATE_DIR = join(dir, 'state');
    await run(gateway, ['config', 'check'], { env });
    const strange = start(gateway, ['config', 'check'], { env: { ...env, GATEWAY_STATE_DIRECTORY: dir } });
    assert.notEqual(await strange.ended, 0, 'a setting that there is not would be told');
  });
});
