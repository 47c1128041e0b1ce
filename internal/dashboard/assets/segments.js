// From events to what a lane of the timeline shows: one state at a time, the worst that is true, flaps folded.

import { WORST } from './words.js';

/**
 * @typedef {{from: number, to: number, state: string, probes: number, opens: number}} Segment times in ms; probes and opens
 * count what is folded into it
 * @typedef {{at: number, id: string, type: string}} Marker
 */

/** What an exchange's gates and overrides are called on the timeline. @param {string} kind */
const gateState = (kind) => (kind === 'exchange' || kind === 'ip' ? 'banned' : 'limited');

/**
 * segments of one exchange between two moments. Every circuit is followed by its own events: what the first one changed from
 * is what was before. Gates, isolations and maintenance are spans with an end; an operator's release cuts theirs short.
 * @param {any[]} events of 24 hours, oldest first
 * @param {string} exchange
 * @param {number} from
 * @param {number} to
 * @param {any} [current] the exchange in the overview: what holds at `to`, where no event has told
 * @returns {Segment[]}
 */
export function segments(events, exchange, from, to, current) {
  /** @type {{from: number, to: number, state: string}[]} */
  const spans = [];
  /** @type {Map<string, {state: string, since: number}>} */
  const circuits = new Map();
  /** @type {Map<string, {since: number, until: number, state: string}>} */
  const timed = new Map();
  /** What an order changed, as it was before: one that failed left everything so. @type {Map<string, [string, any][]>} */
  const before = new Map();
  const end = (/** @type {string} */ key, /** @type {number} */ at) => {
    const t = timed.get(key);
    if (!t) return;
    spans.push({ from: t.since, to: Math.min(t.until, at), state: t.state });
    timed.delete(key);
  };
  const begin = (/** @type {string} */ key, /** @type {number} */ since, /** @type {number} */ until, /** @type {string} */ state) => {
    end(key, since);
    timed.set(key, { since, until, state });
  };

  const undo = (/** @type {any} */ e) => {
    for (const [key, was] of before.get(order(e)) ?? []) {
      if (was) timed.set(key, was);
      else timed.delete(key);
    }
    before.delete(order(e));
  };

  for (const e of events) {
    if (e.exchange !== exchange) continue;
    const at = Date.parse(e.at);
    switch (e.type) {
      case 'circuit': {
        const key = `${e.class}/${e.family ?? ''}`;
        const was = circuits.get(key) ?? { state: e.from, since: from };
        spans.push({ from: was.since, to: at, state: was.state });
        circuits.set(key, { state: e.to, since: at });
        break;
      }
      case 'gate':
        begin(`gate/${e.scope?.kind}/${e.scope?.name ?? ''}`, at, Date.parse(e.until), gateState(e.scope?.kind));
        break;
      case 'action':
        if (e.failed) {
          undo(e);
          break;
        }
        if (e.verb === 'isolate' || e.verb === 'withhold') {
          const key = `${e.verb}/${e.class ?? ''}/${e.symbol ?? ''}`;
          before.set(order(e), [[key, timed.get(key)]]);
          begin(key, at, e.until ? Date.parse(e.until) : to, e.verb === 'isolate' ? 'isolated' : 'withheld');
        } else if (e.verb === 'release') {
          const keys = [...timed.keys()].filter((key) => released(key, e));
          before.set(order(e), keys.map((key) => [key, timed.get(key)]));
          for (const key of keys) end(key, at);
        }
        break;
      case 'override':
        end(`${e.override}/${e.class ?? ''}/${e.symbol ?? ''}`, at);
        break;
      case 'maintenance':
        begin(`maintenance/${e.note ?? ''}`, e.since ? Date.parse(e.since) : at, e.until ? Date.parse(e.until) : to, 'maintenance');
        break;
    }
  }
  for (const c of circuits.values()) spans.push({ from: c.since, to, state: c.state });
  for (const c of current?.circuits ?? []) {
    if (!circuits.has(`${c.class}/${c.family ?? ''}`)) spans.push({ from: Math.max(from, Date.parse(c.since)), to, state: c.state });
  }
  for (const key of [...timed.keys()]) end(key, to);
  return fold(worst(spans, from, to), (to - from) / 150);
}

/** order names an order, so that the event which says that it failed finds the one that announced it. @param {any} e */
const order = (e) => `${e.verb}/${e.class ?? ''}/${e.symbol ?? ''}/${e.actor ?? ''}`;

/** released tells whether a release ends an override: one of everything ends all, one of a class or a pair ends its own. @param {string} key @param {any} e */
function released(key, e) {
  const [verb, cls, ...symbol] = key.split('/');
  if (verb === 'isolate') return !e.symbol && (!e.class || e.class === cls);
  return verb === 'withhold' && !e.class && (!e.symbol || e.symbol === symbol.join('/'));
}

/** worst lays spans over each other and keeps the worst state of each moment. @param {{from: number, to: number, state: string}[]} spans @param {number} from @param {number} to @returns {Segment[]} */
function worst(spans, from, to) {
  const edges = [];
  for (const s of spans) {
    const a = Math.max(from, s.from), b = Math.min(to, s.to);
    if (s.state === 'closed' || !(b > a)) continue;
    edges.push({ at: a, state: s.state, by: 1 }, { at: b, state: s.state, by: -1 });
  }
  edges.sort((a, b) => a.at - b.at);
  const held = new Map(WORST.map((s) => [s, 0]));
  /** @type {Segment[]} */
  const out = [];
  let at = from, state = 'closed';
  const push = (/** @type {number} */ until) => {
    if (until <= at) return;
    const last = out.at(-1);
    if (last && last.state === state) last.to = until;
    else out.push({ from: at, to: until, state, probes: state === 'half_open' ? 1 : 0, opens: state === 'open' ? 1 : 0 });
    at = until;
  };
  for (let i = 0; i < edges.length; i++) {
    push(edges[i].at);
    held.set(edges[i].state, (held.get(edges[i].state) ?? 0) + edges[i].by);
    if (i + 1 < edges.length && edges[i + 1].at === edges[i].at) continue;
    state = WORST.find((s) => (held.get(s) ?? 0) > 0) ?? 'closed';
  }
  state = edges.length ? state : 'closed';
  push(to);
  return out;
}

/**
 * fold makes one segment of an outage: between two probes a circuit is open, and five seconds of open time would make two
 * segments per probe. A healthy gap too short to be seen (least) is folded as well: that is flapping.
 * @param {Segment[]} all @param {number} least
 * @returns {Segment[]}
 */
export function fold(all, least) {
  /** @type {Segment[]} */
  const out = [];
  const failing = (/** @type {Segment|undefined} */ s) => s?.state === 'open' || s?.state === 'half_open';
  for (let i = 0; i < all.length; i++) {
    const s = { ...all[i] }, last = out.at(-1);
    const gap = s.state === 'closed' && s.to - s.from < least && failing(last) && failing(all[i + 1]);
    if (last && failing(last) && (failing(s) || gap)) {
      last.to = s.to;
      last.probes += s.probes;
      last.opens += s.opens;
      if (s.state === 'open') last.state = 'open';
    } else {
      out.push(s);
    }
  }
  return out;
}

/** markers are the actions and the bans of one exchange. @param {any[]} events @param {string} exchange @param {number} from @param {number} to @returns {Marker[]} */
export function markers(events, exchange, from, to) {
  return events.filter((e) => e.exchange === exchange && (e.type === 'action' || (e.type === 'gate' && gateState(e.scope?.kind) === 'banned')))
    .map((e) => ({ at: Date.parse(e.at), id: e.id, type: e.failed ? 'failed' : e.type }))
    .filter((m) => m.at >= from && m.at <= to);
}
