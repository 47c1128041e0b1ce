// A page is described, not built: h makes a description, patch makes the document look like it and touches only what differs.
// So a focused button keeps its focus and a selected word its selection, however often a frame comes.

const SVG = 'http://www.w3.org/2000/svg';
const described = new WeakMap(); // element -> the description that it looks like

/**
 * @typedef {{tag: string, props: Record<string, any>, kids: Kid[]}} Node
 * @typedef {Node | string | number | null | undefined | false} Kid
 */

/**
 * h describes an element. Of props, `key` names it among its siblings, `vars` are style properties (set through the object
 * model, which a strict policy permits), `widget` is something that draws itself: {create(el), update(el, made), destroy(made)}.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...(Kid | Kid[])} kids
 * @returns {Node}
 */
export function h(tag, props, ...kids) {
  return { tag, props: props ?? {}, kids: /** @type {Kid[]} */ (kids.flat(3)) };
}

/**
 * patch makes the children of parent look as described.
 * @param {Element} parent
 * @param {Kid | Kid[]} kids
 */
export function patch(parent, kids) {
  const focused = document.activeElement;
  children(parent, (Array.isArray(kids) ? kids.flat(3) : [kids]));
  // A row that moved lost its focus on the way.
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected && parent.contains(focused)) {
    focused.focus({ preventScroll: true });
  }
}

/** @param {Element} parent @param {Kid[]} kids */
function children(parent, kids) {
  const keyed = new Map();
  for (const el of parent.children) {
    const key = described.get(el)?.props.key;
    if (key !== undefined) keyed.set(key, el);
  }
  let at = parent.firstChild;
  for (const kid of kids) {
    if (kid === null || kid === undefined || kid === false) continue;
    if (typeof kid !== 'object') {
      const text = String(kid);
      if (at instanceof Text) {
        if (at.data !== text) at.data = text;
        at = at.nextSibling;
      } else {
        parent.insertBefore(document.createTextNode(text), at);
      }
      continue;
    }
    const old = find(kid, at, keyed);
    if (old) {
      if (old === at) at = at.nextSibling;
      else parent.insertBefore(old, at);
      update(old, kid);
    } else {
      const el = create(kid, parent);
      parent.insertBefore(el, at);
      update(el, kid); // in its place: what draws itself asks for its size and colours
    }
  }
  while (at) {
    const next = at.nextSibling;
    forget(at);
    at.remove();
    at = next;
  }
}

/** @param {Node} kid @param {ChildNode | null} at @param {Map<any, Element>} keyed @returns {Element | null} */
function find(kid, at, keyed) {
  const same = (/** @type {Element} */ el) => el.localName === kid.tag;
  if (kid.props.key !== undefined) {
    const el = keyed.get(kid.props.key);
    return el && same(el) ? el : null;
  }
  return at instanceof Element && described.get(at)?.props.key === undefined && described.has(at) && same(at) ? at : null;
}

/** @param {Node} node @param {Element} parent */
function create(node, parent) {
  const svg = node.tag === 'svg' || (parent.namespaceURI === SVG && parent.localName !== 'foreignObject');
  const el = svg ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  described.set(el, { tag: node.tag, props: {}, kids: [] });
  return el;
}

/** @param {Element} el @param {Node} node */
function update(el, node) {
  const before = described.get(el);
  for (const name in before.props) if (!(name in node.props)) put(el, name, undefined, before.props[name]);
  for (const name in node.props) {
    if (before.props[name] !== node.props[name] || name === 'vars') put(el, name, node.props[name], before.props[name]);
  }
  if (node.props.widget) {
    const made = before.made ?? node.props.widget.create(el);
    node.props.widget.update(el, made, node.props.data);
    described.set(el, { ...node, made });
    return;
  }
  described.set(el, node);
  children(el, node.kids);
}

/** @param {Element} el @param {string} name @param {any} value @param {any} before */
function put(el, name, value, before) {
  switch (name) {
    case 'key': case 'widget': case 'data':
      return;
    case 'vars':
      for (const v in { ...before, ...value }) {
        if (value?.[v] !== before?.[v]) {
          if (value?.[v] === undefined) /** @type {HTMLElement} */ (el).style.removeProperty(v);
          else /** @type {HTMLElement} */ (el).style.setProperty(v, value[v]);
        }
      }
      return;
    default:
      if (value === undefined || value === null || value === false) el.removeAttribute(name);
      else el.setAttribute(name, value === true ? '' : String(value));
  }
}

/** forget ends what draws itself in a part of the page that goes. @param {globalThis.Node} node */
function forget(node) {
  if (!(node instanceof Element)) return;
  const d = described.get(node);
  if (d?.made) d.props.widget.destroy(d.made);
  for (const kid of node.children) forget(kid);
}

/** $ is the element with this id; the page's own document has it, or the page is broken. @param {string} id @returns {any} */
export function $(id) {
  const el = document.getElementById(id);
  if (!el) throw new Error(`the page has no #${id}`);
  return el;
}
