// Who acts. A key is sent once, in exchange for a cookie that no script can read; it is kept nowhere here.

import { h, patch, $ } from './dom.js';
import { post } from './post.js';

/** newSession @param {() => void} changed @param {() => void} reopen */
export function newSession(changed, reopen) {
  const me = { actor: /** @type {string|null} */ (null), may_act: false, needs_name: false, why: 'Not known yet who is asking.' };
  const dialog = /** @type {HTMLDialogElement} */ ($('login'));

  const refresh = async () => {
    try {
      const answer = await fetch('/admin/v1/me', { cache: 'no-store', signal: AbortSignal.timeout(5000) });
      if (answer.ok) Object.assign(me, await answer.json());
      else Object.assign(me, { actor: null, may_act: false, needs_name: false, why: 'The gateway does not say who may act.' });
      changed();
    } catch {
      // Nobody is there: the page says so already, and what was known stays.
    }
  };

  const who = () => patch($('who'), [
    me.may_act ? h('span', { key: 'who' }, me.actor ? `acting as ${me.actor}` : 'acting without a key')
      : h('span', { key: 'why', class: 'readonly' }, 'read-only', me.why && `: ${me.why}`),
    me.actor && !me.needs_name ? h('button', { type: 'button', key: 'out', 'data-act': 'logout' }, 'Log out')
      : !me.may_act && h('button', { type: 'button', key: 'in', 'data-act': 'login' }, 'Log in'),
  ]);

  /** @param {string} [problem] */
  const form = (problem) => patch(dialog.querySelector('form') ?? dialog, [
    h('h2', { id: 'login-title' }, 'Log in with an ops key'),
    h('p', null, 'A key with the scope ops:write, made by `gateway key new`. It is sent once and not kept in this browser.'),
    h('label', { for: 'login-key' }, 'Key'),
    h('input', { id: 'login-key', name: 'key', type: 'password', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'login-problem', autofocus: true }),
    h('p', { id: 'login-problem', class: 'problem', role: 'alert' }, problem ?? ''),
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'main' }, 'Log in'), h('button', { type: 'button', 'data-act': 'close' }, 'Cancel')),
  ]);

  dialog.addEventListener('submit', async (e) => {
    e.preventDefault();
    const input = /** @type {HTMLInputElement} */ ($('login-key'));
    const key = input.value.trim();
    input.value = '';
    if (!key) return form('Nothing was typed.');
    const { problem } = await post('/admin/v1/session', { key });
    if (problem) return form(problem.detail);
    dialog.close();
    await refresh();
    reopen();
  });

  return {
    me,
    refresh,
    who,
    login() {
      form();
      if (!dialog.open) dialog.showModal();
    },
    async logout() {
      await post('/admin/v1/session/end', {});
      await refresh();
      reopen();
    },
  };
}
