// What the page knows: the last overview, the events of 24 hours, and how fresh that is.

const LATE = 2_500; // ms without a frame. They come every second: two in a row are missing, and the headline may be past
const FROZEN = 4_000; // ms without a frame: the page has to say within five seconds that it stands still
const MOST = 5_000; // events: what a snapshot holds at most

/**
 * @typedef {{id: string, at: string, type: string, exchange?: string, [more: string]: any}} GatewayEvent
 * @typedef {'connecting'|'live'|'late'|'reconnecting'|'frozen'|'denied'} Line
 */

/** @param {() => number} wall the computer's clock, in ms */
export function newStore(wall = Date.now) {
  /** @type {any} */
  let overview = null;
  /** @type {GatewayEvent[]} */
  let events = [];
  /** @type {Set<string>} */
  let ids = new Set();
  let heard = 0; // when the last frame came, by this computer's clock
  let behind = 0; // this computer's clock against the gateway's, in ms: positive is behind
  let lost = false, stopping = false, denied = 0;
  let revision = 0; // of events

  const show = (/** @type {any} */ o, /** @type {number} */ at) => {
    overview = o;
    heard = at;
    behind = Date.parse(o.now) - at;
    lost = stopping = false;
    denied = 0;
  };

  return {
    /**
     * take takes a message of the stream in and returns the events that are new to the page, none for a first snapshot.
     * @param {any} m
     * @returns {GatewayEvent[]}
     */
    take(m) {
      switch (m.kind) {
        case 'snapshot': {
          const first = overview === null;
          const { events: all, ...rest } = JSON.parse(m.data);
          const fresh = first ? [] : all.filter((/** @type {GatewayEvent} */ e) => !ids.has(e.id));
          events = all.slice(-MOST);
          ids = new Set(events.map((e) => e.id));
          revision++;
          show(rest, m.at);
          return fresh;
        }
        case 'state':
          show(JSON.parse(m.data), m.at);
          return [];
        case 'event': {
          const e = JSON.parse(m.data);
          if (ids.has(e.id)) return [];
          events.push(e);
          ids.add(e.id);
          if (events.length > MOST) ids.delete(/** @type {GatewayEvent} */ (events.shift()).id);
          revision++;
          return [e];
        }
        case 'bye':
          stopping = true;
          return [];
        case 'lost':
          lost = true;
          return [];
        case 'denied':
          denied = m.status;
          return [];
      }
      return [];
    },
    get overview() { return overview; },
    get events() { return events; },
    get revision() { return revision; },
    get behind() { return behind; },
    get stopping() { return stopping; },
    get denied() { return denied; },
    /** heard is when the last frame came, by the gateway's clock in ms. */
    get heard() { return heard + behind; },
    /** line is how the connection stands. @returns {Line} */
    get line() {
      if (denied) return 'denied';
      if (overview === null) return 'connecting';
      const quiet = wall() - heard;
      if (quiet >= FROZEN) return 'frozen';
      if (lost) return 'reconnecting';
      return quiet >= LATE ? 'late' : 'live';
    },
    /** now is the gateway's clock. It stands still with the data: an age that goes on counting would be an invention. */
    get now() { return (wall() - heard >= FROZEN ? heard : wall()) + behind; },
    /** frozenFor is how long nothing came, in ms. */
    get frozenFor() { return wall() - heard; },
  };
}
