// What a screen reader is told: changes, never samples. Several within a second are one announcement.

import { $ } from './dom.js';
import { sentence } from './words.js';

const PAUSE = 1_000; // ms
const MOST = 3; // sentences at once; of more, the number is said

export function newAnnouncer() {
  /** @type {string[]} */
  let waiting = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let line = '';
  const say = (/** @type {string} */ words) => {
    waiting.push(words);
    timer ??= setTimeout(() => {
      timer = undefined;
      const more = waiting.length - MOST;
      $('said').textContent = waiting.slice(-MOST).join('. ') + (more > 0 ? `. And ${more} more changes.` : '.');
      waiting = [];
    }, PAUSE);
  };
  return {
    /** events says what happened. @param {any[]} all */
    events(all) {
      for (const e of all) say(sentence(e));
    },
    /** connection says that the data is live again; that it is frozen, the alert says. @param {string} now */
    connection(now) {
      if (now === 'live' && line === 'frozen') say('The data is live again');
      if (now === 'live' || now === 'frozen') line = now;
    },
  };
}
