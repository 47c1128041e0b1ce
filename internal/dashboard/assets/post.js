// One way to ask for a change: POST with a JSON body, as the gateway demands it of everybody.

const PATIENCE = 15_000; // ms: a probe asks the exchange, which may take its whole deadline

/**
 * post sends an order and returns its outcome, or the problem in words.
 * @param {string} path
 * @param {object} body
 * @returns {Promise<{outcome?: any, problem?: {detail: string, parameter?: string}}>}
 */
export async function post(path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      cache: 'no-store',
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    return { problem: { detail: 'The gateway did not answer. Whether it was done is not known: look at the audit when the page is live again.' } };
  }
  const text = await answer.text();
  let read;
  try {
    read = text ? JSON.parse(text) : {};
  } catch {
    read = {};
  }
  if (answer.ok) return { outcome: read };
  return { problem: { detail: read.detail ?? `The gateway refused it (${answer.status}).`, parameter: read.parameter } };
}
