// The words of the page. A state has one word, and it is the same here, on the plain page and in the log.

import { span, time, minute, ms } from './time.js';

/** @type {Record<string, string>} */
const STATES = { closed: 'answers', open: 'failing', half_open: 'trying', not_asked: 'not asked' };
/** stateWord is what an exchange does. @param {string} s */
export const stateWord = (s) => STATES[s] ?? s;

/** circuitWord is the state of a circuit, as the API and the metrics have it. @param {string} s */
export const circuitWord = (s) => s.replace(/_/g, '-');

/** Bad states first: of two that are true at once, the earlier one is shown. */
export const WORST = ['banned', 'isolated', 'open', 'half_open', 'failing', 'withheld', 'maintenance', 'limited', 'not_asked', 'closed'];

/** @type {Record<string, string>} */
const MEANING = {
  banned: 'the exchange shut us out: no request is sent until the ban ends',
  isolated: 'an operator isolated it: no request is sent, probes included',
  open: 'it does not answer: no request is sent until the next try',
  half_open: 'one request is on its way to find out whether it answers again',
  failing: 'clients get stale answers or errors',
  withheld: 'an operator withheld it: reads are refused',
  maintenance: 'it is closed for maintenance',
  limited: 'a part of it may not be asked for a while',
  not_asked: 'no client asks',
  closed: 'it answers',
};
/** @param {string} s */
export const meaning = (s) => MEANING[s] ?? s;

/** className is a circuit's class, or all of them. @param {string} [c] @param {string} [family] */
export const className = (c, family) => (c ? c.replace(/_/g, ' ') + (family ? ` (${family})` : '') : 'all circuits');

/** @type {Record<string, string>} */
const VERBS = { isolate: 'isolated', release: 'released', probe: 'asked for a probe of', withhold: 'withheld', purge: 'purged', reload: 'reloaded the configuration' };
/** What could not be done. @type {Record<string, string>} */
const TRIED = { probe: 'ask for a probe of', reload: 'reload the configuration' };
/** @type {Record<string, string>} */
const CAUSES = {
  consecutive: 'failures in a row', rate: 'too many of its calls failed', slow: 'too many of its calls were slow',
  probe_started: 'the probe is on its way', probe_failed: 'the probe failed', probe_lost: 'the probe never ended', probe_succeeded: 'the probe succeeded',
};

/** cause is why a circuit changed, with the counts. @param {any} e */
function cause(e) {
  const w = e.window ?? {};
  const kind = e.kind ? ` (${e.kind})` : '';
  switch (e.cause) {
    case 'consecutive': return `${w.consecutive} failures in a row${kind}`;
    case 'rate': return `${w.failures} of ${w.settled} calls failed${kind}`;
    case 'slow': return `${w.slow} of ${w.settled} calls were slow${kind}`;
    case 'probe_failed': return `the probe failed${kind}`;
    default: return CAUSES[e.cause] ?? e.cause ?? '';
  }
}

/** what an order or an override is about. @param {any} e */
const target = (e) => [e.exchange, e.symbol, e.class && `(${className(e.class)})`].filter(Boolean).join(' ');

/** sentence says what happened. @param {any} e @returns {string} */
export function sentence(e) {
  const until = e.until ? ` until ${time(e.until, ms(e.at))}` : '';
  switch (e.type) {
    case 'circuit': {
      const next = e.to === 'open' && e.until ? `; next try at ${time(e.until)}` : '';
      return `${e.exchange} ${className(e.class, e.family)} ${stateWord(e.from)} → ${stateWord(e.to)}: ${cause(e)}${next}`;
    }
    case 'gate':
      return `${e.exchange}: no request ${scope(e.scope)}${until}, because it said: ${String(e.kind).replace(/_/g, ' ')}`;
    case 'action': {
      if (e.failed) {
        const what = [TRIED[e.verb] ?? e.verb, e.verb !== 'reload' && target(e)].filter(Boolean).join(' ');
        return `${e.actor} could not ${what}: ${e.failed}${e.reason ? ` (asked for: ${e.reason})` : ''}`;
      }
      const what = e.verb === 'reload' ? VERBS.reload : `${VERBS[e.verb] ?? e.verb} ${target(e)}`;
      return `${e.actor} ${what}${until}: ${e.reason}`;
    }
    case 'override':
      return `${e.override === 'withhold' ? 'withholding' : 'isolation'} of ${target(e)} by ${e.actor} ended`;
    case 'maintenance':
      return `${e.exchange} maintenance ${e.announced ? 'announced' : 'configured'}${e.since ? ` from ${time(e.since, ms(e.at))}` : ''}${until}${e.note ? `: ${e.note}` : ''}`;
    default:
      return e.type;
  }
}

/** scope is what a gate is closed to. @param {any} s */
export function scope(s) {
  switch (s?.kind) {
    case 'exchange': return 'at all';
    case 'ip': return 'from our address';
    case 'public': return 'without a key';
    case 'account': return 'for one account';
    default: return `of ${s?.kind ?? 'it'} ${s?.name ?? ''}`.trim();
  }
}

/** overrideWords @param {any} o @param {number} now */
export function overrideWords(o, now) {
  const what = o.kind === 'withhold' ? `withheld${o.symbol ? ` ${o.symbol}` : ''}` : `isolated${o.class ? ` (${className(o.class)})` : ''}`;
  return `${what} by ${o.actor} until ${minute(o.until)}, for another ${span(ms(o.until) - now)}: ${o.reason}`;
}

/** percent @param {number} share */
export const percent = (share) => `${share < 0.1 && share > 0 ? (share * 100).toFixed(1) : Math.round(share * 100)}\u00a0%`;
