// What the page works out by itself, without a browser: from events to the timeline, and how fresh its data is.
import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { segments, markers, fold } from '../../internal/dashboard/assets/segments.js';
import { newStore } from '../../internal/dashboard/assets/store.js';
import { sentence } from '../../internal/dashboard/assets/words.js';
import { inForce, effect, shortened } from '../../internal/dashboard/assets/inforce.js';
import { next, span, countdown, age, rough } from '../../internal/dashboard/assets/time.js';

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE;
const T = Date.parse('2026-11-30T02:00:00Z');
const iso = (t) => new Date(t).toISOString();
const change = (at, from, to, cls = 'market_data') => ({ at: iso(at), type: 'circuit', exchange: 'okx', class: cls, from, to });
const brief = (all) => all.map((s) => `${s.state} ${(s.to - s.from) / SECOND}`);

describe('segments', () => {
  it('nothing happened: one closed segment', () => {
    assert.deepEqual(brief(segments([], 'okx', T, T + HOUR)), ['closed 3600']);
  });

  it('an outage with 37 probes is one segment, and says how many', () => {
    const events = [change(T + 60 * SECOND, 'closed', 'open')];
    let t = T + 60 * SECOND;
    for (let i = 0; i < 37; i++) {
      events.push(change(t += 20 * SECOND, 'open', 'half_open'));
      events.push(change(t += SECOND, 'half_open', i < 36 ? 'open' : 'closed'));
    }
    const all = segments(events, 'okx', T, T + HOUR);
    assert.deepEqual(brief(all), ['closed 60', 'open 777', 'closed 2763']);
    assert.equal(all[1].probes, 37);
    assert.equal(all[1].opens, 37);
  });

  it('what the first event changed from is what was before', () => {
    assert.deepEqual(brief(segments([change(T + 10 * SECOND, 'open', 'closed')], 'okx', T, T + 60 * SECOND)), ['open 10', 'closed 50']);
  });

  it('the worst of several circuits is shown', () => {
    const events = [
      change(T, 'closed', 'half_open', 'account'), change(T + 10 * SECOND, 'closed', 'open'),
      change(T + 20 * SECOND, 'open', 'closed'), change(T + 30 * SECOND, 'half_open', 'closed', 'account'),
    ];
    const all = segments(events, 'okx', T, T + HOUR);
    assert.deepEqual(brief(all), ['open 30', 'closed 3570'], 'half-open, open, half-open are one outage');
  });

  it('an isolation ends by itself, by a release, or with a later one of the same', () => {
    const isolate = (at, minutes) => ({ at: iso(at), type: 'action', exchange: 'okx', verb: 'isolate', until: iso(at + minutes * MINUTE) });
    const release = (at, more) => ({ at: iso(at), type: 'action', exchange: 'okx', verb: 'release', ...more });
    assert.deepEqual(brief(segments([isolate(T, 10)], 'okx', T, T + HOUR)), ['isolated 600', 'closed 3000']);
    assert.deepEqual(brief(segments([isolate(T, 10), release(T + 5 * MINUTE)], 'okx', T, T + HOUR)), ['isolated 300', 'closed 3300']);
    assert.deepEqual(brief(segments([isolate(T, 10), isolate(T + 5 * MINUTE, 10)], 'okx', T, T + HOUR)), ['isolated 900', 'closed 2700']);
    assert.deepEqual(brief(segments([isolate(T, 10), release(T + 5 * MINUTE, { symbol: 'BTC/USDT' })], 'okx', T, T + HOUR)),
      ['isolated 600', 'closed 3000'], 'the release of a pair ends no isolation');
    assert.deepEqual(brief(segments([isolate(T, 10)], 'binance', T, T + HOUR)), ['closed 3600'], 'another exchange');
  });

  it('an order that failed left everything as it was', () => {
    const order = (at, verb, more) => ({ at: iso(at), type: 'action', exchange: 'okx', verb, actor: 'night', ...more });
    const first = order(T, 'isolate', { until: iso(T + 20 * MINUTE) });
    const second = order(T + 5 * MINUTE, 'isolate', { until: iso(T + 50 * MINUTE) });
    const release = order(T + 5 * MINUTE, 'release');
    const failed = (e) => ({ ...e, failed: 'it could not be done' });
    const after = (...events) => brief(segments(events, 'okx', T, T + HOUR));
    assert.deepEqual(after(first, failed(first)), ['closed 3600'], 'nothing was in force');
    assert.deepEqual(after(first, second, failed(second)), ['isolated 1200', 'closed 2400'], 'the one before still is');
    assert.deepEqual(after(first, release, failed(release)), ['isolated 1200', 'closed 2400'], 'nothing was released');
    assert.deepEqual(after(first, failed(order(T + MINUTE, 'probe'))), ['isolated 1200', 'closed 2400'], 'another order');
    assert.deepEqual(after(failed(first)), ['closed 3600'], 'what announced it is not known any more');
    assert.deepEqual(markers([first, failed(first)], 'okx', T, T + HOUR).map((m) => m.type), ['action', 'failed']);
  });

  it('a withheld pair is released by its own name or with everything', () => {
    const withhold = { at: iso(T), type: 'action', exchange: 'okx', verb: 'withhold', symbol: 'BTC/USDT', until: iso(T + HOUR) };
    const release = (symbol) => ({ at: iso(T + MINUTE), type: 'action', exchange: 'okx', verb: 'release', symbol });
    assert.deepEqual(brief(segments([withhold, release('BTC/USDT')], 'okx', T, T + 2 * MINUTE)), ['withheld 60', 'closed 60']);
    assert.deepEqual(brief(segments([withhold, release(undefined)], 'okx', T, T + 2 * MINUTE)), ['withheld 60', 'closed 60']);
    assert.deepEqual(brief(segments([withhold, release('ETH/USDT')], 'okx', T, T + 2 * MINUTE)), ['withheld 120']);
  });

  it('a ban outranks an open circuit, and begins before the window if it must', () => {
    const ban = { at: iso(T - HOUR), type: 'gate', exchange: 'okx', kind: 'banned', scope: { kind: 'ip' }, until: iso(T + 30 * SECOND) };
    assert.deepEqual(brief(segments([ban, change(T, 'closed', 'open')], 'okx', T, T + 60 * SECOND)), ['banned 30', 'open 30']);
    assert.deepEqual(markers([ban], 'okx', T - 2 * HOUR, T).length, 1);
    assert.deepEqual(markers([ban], 'okx', T, T + HOUR).length, 0);
  });

  it('what no event has told is taken from the overview', () => {
    const current = { circuits: [{ class: 'market_data', state: 'open', since: iso(T + 20 * SECOND) }] };
    assert.deepEqual(brief(segments([], 'okx', T, T + 60 * SECOND, current)), ['closed 20', 'open 40']);
  });

  it('the segments cover the window without a hole, whatever happened', () => {
    let seed = 7;
    const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let round = 0; round < 200; round++) {
      const events = [];
      for (let i = 0, t = T - HOUR; i < random(40); i++) {
        t += random(10 * MINUTE);
        const state = () => ['closed', 'open', 'half_open'][random(3)];
        events.push([
          change(t, state(), state(), ['market_data', 'account'][random(2)]),
          { at: iso(t), type: 'action', exchange: 'okx', verb: ['isolate', 'release', 'withhold', 'purge'][random(4)], symbol: [undefined, 'BTC/USDT'][random(2)], until: iso(t + random(HOUR)) },
          { at: iso(t), type: 'gate', exchange: 'okx', scope: { kind: ['ip', 'endpoint'][random(2)] }, until: iso(t + random(HOUR)) },
          { at: iso(t), type: 'override', exchange: 'okx', override: 'isolate' },
        ][random(4)]);
      }
      const all = segments(events, 'okx', T, T + 2 * HOUR);
      assert.equal(all[0].from, T);
      assert.equal(all.at(-1).to, T + 2 * HOUR);
      all.slice(1).forEach((s, i) => assert.equal(s.from, all[i].to));
      assert.ok(all.every((s) => s.to > s.from));
    }
  });

  it('a healthy gap that could not be seen is folded, one that can is not', () => {
    const s = (state, from, to) => ({ state, from, to, probes: 0, opens: state === 'open' ? 1 : 0 });
    const all = [s('open', 0, 10), s('closed', 10, 12), s('open', 12, 20), s('closed', 20, 40), s('open', 40, 50)];
    assert.deepEqual(fold(all, 5).map((x) => `${x.state} ${x.from}-${x.to} ${x.opens}`), ['open 0-20 2', 'closed 20-40 0', 'open 40-50 1']);
  });
});

describe('the store', () => {
  const overview = (now) => ({ now: iso(now), exchanges: [], books: [] });
  const message = (kind, data, at) => ({ kind, data: JSON.stringify(data), at });

  it('is frozen four seconds after the last frame, and its clock stands still', () => {
    let wall = T;
    const store = newStore(() => wall);
    assert.equal(store.line, 'connecting');
    store.take(message('snapshot', { ...overview(T + 3000), events: [] }, wall)); // this computer is 3 s behind
    assert.equal(store.line, 'live');
    assert.equal(store.behind, 3000);
    wall += 2400;
    assert.equal(store.line, 'live');
    wall += 100;
    assert.equal(store.line, 'late', 'two frames are missing');
    wall += 1400;
    assert.equal(store.now, T + 6900);
    store.take({ kind: 'lost' });
    assert.equal(store.line, 'reconnecting');
    wall += 100;
    assert.equal(store.line, 'frozen');
    assert.equal(store.now, T + 3000, 'ages are those of the last frame');
    wall += 60_000;
    assert.equal(store.now, T + 3000);
    assert.equal(store.frozenFor, 64_000);
    store.take({ kind: 'open' });
    assert.equal(store.line, 'frozen', 'a connection is not yet data');
    store.take(message('state', overview(wall), wall));
    assert.equal(store.line, 'live');
  });

  it('knows each event once, over a new snapshot as well, and at most 5,000', () => {
    const store = newStore(() => T);
    const e = (n, boot = 'a') => ({ id: `${boot}-${n}`, at: iso(T), type: 'circuit' });
    assert.deepEqual(store.take(message('snapshot', { ...overview(T), events: [e(1), e(2)] }, T)), [], 'the first snapshot is no news');
    assert.equal(store.take(message('event', e(3), T)).length, 1);
    assert.equal(store.take(message('event', e(3), T)).length, 0);
    const fresh = store.take(message('snapshot', { ...overview(T), events: [e(1), e(2), e(3), e(4), e(1, 'b')] }, T));
    assert.deepEqual(fresh.map((x) => x.id), ['a-4', 'b-1'], 'what was missed');
    for (let n = 5; n < 6000; n++) store.take(message('event', e(n), T));
    assert.equal(store.events.length, 5000);
    assert.equal(store.events.at(-1).id, 'a-5999');
  });
});

describe('what is in force', () => {
  const isolated = (actor, minutes, more) => ({ kind: 'isolate', actor, reason: 'upgrade', since: iso(T), until: iso(T + minutes * MINUTE), ...more });
  const withheld = (actor, symbol) => ({ kind: 'withhold', symbol, actor, reason: 'levels', since: iso(T), until: iso(T + HOUR) });
  const all = { '*': isolated('a', 60), account: isolated('b', 60, { class: 'account' }), reads: withheld('c', undefined), pair: withheld('d', 'BTC/USDT') };
  const effects = (order) => Object.fromEntries(Object.entries(all).map(([name, o]) => [name, effect(order, o)]));

  it('an order replaces what is about the same, a release ends what it names or everything', () => {
    assert.deepEqual(effects({ verb: 'isolate' }), { '*': 'replaced', account: 'stays', reads: 'stays', pair: 'stays' });
    assert.deepEqual(effects({ verb: 'isolate', class: 'account' }), { '*': 'stays', account: 'replaced', reads: 'stays', pair: 'stays' });
    assert.deepEqual(effects({ verb: 'withhold', symbol: '' }), { '*': 'stays', account: 'stays', reads: 'replaced', pair: 'stays' });
    assert.deepEqual(effects({ verb: 'withhold', symbol: 'BTC/USDT' }), { '*': 'stays', account: 'stays', reads: 'stays', pair: 'replaced' });
    assert.deepEqual(effects({ verb: 'release' }), { '*': 'ended', account: 'ended', reads: 'ended', pair: 'ended' });
    assert.deepEqual(effects({ verb: 'release', class: 'account' }), { '*': 'stays', account: 'ended', reads: 'stays', pair: 'stays' });
    assert.deepEqual(effects({ verb: 'release', symbol: 'BTC/USDT' }), { '*': 'stays', account: 'stays', reads: 'stays', pair: 'ended' });
    assert.deepEqual(effects({ verb: 'probe', class: 'market_data' }), { '*': 'forbids', account: 'stays', reads: 'stays', pair: 'stays' });
    assert.deepEqual(effects({ verb: 'probe' }), { '*': 'forbids', account: 'forbids', reads: 'stays', pair: 'stays' });
    assert.deepEqual(effects({ verb: 'purge', symbol: 'BTC/USDT' }), { '*': 'stays', account: 'stays', reads: 'stays', pair: 'stays' });
  });

  it('what changes comes first, and of hundreds the number is said', () => {
    const lines = inForce({ verb: 'isolate' }, [all.account, all['*']], T);
    assert.match(lines[0], /^isolated by a until \d\d:\d\d \S+ \(upgrade\); your order replaces it\.$/);
    assert.match(lines[1], /^isolated \(account\) by b .* leaves it as it is\.$/);
    const many = inForce({ verb: 'isolate' }, [...Array.from({ length: 600 }, (_, i) => withheld('d', `C${i}/USDT`)), all['*']], T);
    assert.equal(many.length, 6);
    assert.match(many[0], /^isolated by a/);
    assert.equal(many[5], 'And 596 more.');
    assert.deepEqual(inForce({ verb: 'isolate' }, [], T), []);
  });

  it('only what is replaced can be shortened', () => {
    const by = (order, overrides, minutes) => shortened(order, overrides, T + minutes * MINUTE)?.by.replaceAll('\u00a0', ' ');
    assert.equal(by({ verb: 'isolate' }, [isolated('bob', 240)], 15), '3 h 45 min');
    assert.equal(by({ verb: 'isolate' }, [isolated('bob', 240)], 240), undefined);
    assert.equal(by({ verb: 'isolate' }, [isolated('bob', 240)], 300), undefined);
    assert.equal(by({ verb: 'isolate', class: 'account' }, [isolated('bob', 240)], 15), undefined);
    assert.equal(by({ verb: 'isolate' }, [isolated('bob', 240)], NaN), undefined, 'an end that is not yet said');
    assert.deepEqual([MINUTE - 1, MINUTE, 61 * MINUTE, 120 * MINUTE].map((n) => rough(n).replaceAll('\u00a0', ' ')), ['less than a minute', '1 min', '1 h 1 min', '2 h']);
  });
});

describe('words', () => {
  it('an event is a sentence', () => {
    const said = sentence({ at: iso(T), type: 'circuit', exchange: 'okx', class: 'market_data', from: 'closed', to: 'open', cause: 'consecutive', kind: 'timeout', window: { consecutive: 5 } });
    assert.equal(said, 'okx market data answers → failing: 5 failures in a row (timeout)');
    assert.equal(sentence({ at: iso(T), type: 'action', verb: 'reload', actor: 'night', reason: 'new keys' }), 'night reloaded the configuration: new keys');
    assert.equal(sentence({ at: iso(T), type: 'override', override: 'withhold', exchange: 'okx', symbol: 'BTC/USDT', actor: 'night' }), 'withholding of okx BTC/USDT by night ended');
  });

  it('every type, verb and cause of the gateway has words', async () => {
    const { readFile } = await import('node:fs/promises');
    const go = await readFile(new URL('../../internal/market/event.go', import.meta.url), 'utf8') + await readFile(new URL('../../internal/market/circuit.go', import.meta.url), 'utf8');
    const values = (type) => [...go.matchAll(new RegExp(`\\s${type} += "([a-z_]+)"`, 'g'))].map((m) => m[1]);
    const types = values('EventType'), verbs = values('Verb'), causes = values('Cause');
    assert.ok(types.length >= 5 && verbs.length >= 6 && causes.length >= 7, `${types} ${verbs} ${causes}`);
    for (const type of types) assert.notEqual(sentence({ at: iso(T), type, verb: 'isolate', exchange: 'okx' }), type, `type ${type}`);
    for (const verb of verbs) assert.match(sentence({ at: iso(T), type: 'action', verb, exchange: 'okx', actor: 'night', reason: 'r' }), /^night (isolated|released|asked|withheld|purged|reloaded)/);
    for (const verb of verbs) {
      const said = sentence({ at: iso(T), type: 'action', verb, exchange: verb === 'reload' ? undefined : 'okx', actor: 'night', reason: 'r', failed: 'the file has a mistake' });
      assert.match(said, /^night could not [a-z ]+: the file has a mistake \(asked for: r\)$/);
    }
    for (const cause of causes) assert.doesNotMatch(sentence({ at: iso(T), type: 'circuit', exchange: 'okx', class: 'account', from: 'closed', to: 'open', cause, window: {} }), /_/, `cause ${cause}`);
  });

  it('HH:MM is the next one', () => {
    const at = (h, m) => new Date(2026, 10, 30, h, m).getTime();
    assert.equal(next('04:30', at(2, 0)), at(4, 30));
    assert.equal(next('04:30', at(4, 30)), new Date(2026, 11, 1, 4, 30).getTime());
    assert.equal(next('01:00', at(23, 0)), new Date(2026, 11, 1, 1, 0).getTime());
  });

  it('durations in two units', () => {
    const plain = (s) => s.replaceAll('\u00a0', ' ');
    assert.deepEqual([0, 59_999, 61_000, 3_660_000, 50 * HOUR].map((n) => plain(span(n))), ['0 s', '59 s', '1 min 01 s', '1 h 01 min', '2 d 02 h']);
    assert.deepEqual([-5, 1, 1000, 59_001].map((n) => plain(countdown(n))), ['0 s', '1 s', '1 s', '1 min 00 s']);
    assert.deepEqual([42, 1240, 12_400].map((n) => plain(age(n))), ['42 ms', '1.2 s', '12 s']);
  });
});
