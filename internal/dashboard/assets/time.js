// Moments and durations as a person reads them. Moments are shown in this computer's time zone, which the page names; the
// exact one, in UTC, is in the element's title.

/** span is a duration in its two largest units. @param {number} ms */
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  const of = (/** @type {any[]} */ ...parts) => parts.join('\u00a0'); // not to be broken over two lines
  if (s < 60) return of(s, 's');
  if (s < 3600) return of(Math.floor(s / 60), 'min', two(s % 60), 's');
  if (s < 48 * 3600) return of(Math.floor(s / 3600), 'h', two(Math.floor(s / 60) % 60), 'min');
  return of(Math.floor(s / 86400), 'd', two(Math.floor(s / 3600) % 24), 'h');
}

/** countdown is like span and rounds up: "in 0 s" would be a lie for a second. @param {number} ms */
export const countdown = (ms) => span(Math.ceil(Math.max(0, ms) / 1000) * 1000);

/** rough is a duration to the minute: what stands in a sentence must not change each second. @param {number} ms */
export function rough(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return 'less than a minute';
  if (minutes < 60) return `${minutes}\u00a0min`;
  return `${Math.floor(minutes / 60)}\u00a0h${minutes % 60 ? `\u00a0${minutes % 60}\u00a0min` : ''}`;
}

/** age is a short duration with a tenth, a longer one like span. @param {number} ms */
export function age(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}\u00a0ms`;
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}\u00a0s` : span(ms);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const short = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });

/** @param {number|string} t */
export const ms = (t) => (typeof t === 'number' ? t : Date.parse(t));
/** time is HH:MM:SS, with the day if it is another than now's. @param {number|string} t @param {number} [now] */
export function time(t, now) {
  const d = new Date(ms(t));
  const other = now !== undefined && day.format(d) !== day.format(now);
  return (other ? `${day.format(d)} ` : '') + clock.format(d);
}
/** minute is HH:MM. @param {number|string} t */
export const minute = (t) => short.format(new Date(ms(t)));
/** moment is HH:MM and its time zone, with the day if it is another than now's. @param {number|string} t @param {number} now */
export function moment(t, now) {
  const d = new Date(ms(t));
  return `${day.format(d) === day.format(now) ? '' : `${day.format(d)} `}${short.format(d)} ${zone()}`;
}
/** exact is the moment in UTC. @param {number|string} t */
export const exact = (t) => new Date(ms(t)).toISOString();

/** zone names this computer's time zone. */
export function zone() {
  const part = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' }).formatToParts(new Date()).find((p) => p.type === 'timeZoneName');
  return part?.value ?? 'local time';
}

/** next is the coming moment at which this computer's clock shows HH:MM. @param {string} text @param {number} now */
export function next(text, now) {
  const [h, m] = text.split(':').map(Number);
  const d = new Date(now);
  d.setHours(h, m, 0, 0);
  if (d.getTime() <= now) d.setDate(d.getDate() + 1);
  return d.getTime();
}
