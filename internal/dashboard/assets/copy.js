// Copying. The clipboard is offered to pages from this computer and over TLS only; elsewhere the old way works still.

/** copy @param {string} text @returns {Promise<boolean>} */
export async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not permitted: the old way
    }
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'unseen';
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
