// Sparklines. They are drawn, so each stands beside the words that say the same.

import uPlot from './uplot/uPlot.esm.js';

const HEIGHT = 40; // px

/** Colours are asked for once per scheme and chart: a canvas does not follow a change by itself. */
let scheme = 0;
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { scheme++; });

/** colour is what a custom property comes to here. @param {HTMLElement} el @param {string} name */
function colour(el, name) {
  el.style.color = `var(${name})`;
  const c = getComputedStyle(el).color;
  el.style.removeProperty('color');
  return c;
}

/**
 * @typedef {{name: string, stroke: string, fill?: string, dash?: number[], width?: number}} Line stroke and fill are custom properties
 * @typedef {{el: HTMLElement, plot: any, scheme: number, stamp: string, watch: ResizeObserver}} Made
 */

/**
 * chart is a widget that draws columns of numbers: data is {xs, ys, top, stamp}, where top is the end of the scale, if it is
 * fixed. It draws when the stamp is another one: a picture of five minutes does not change within a sample, its words do.
 * With bands, the fill of a line ends at the next line instead of at zero.
 * @param {Line[]} lines
 * @param {boolean} [bands]
 */
export function chart(lines, bands = false) {
  const draw = (/** @type {Made} */ made, /** @type {any} */ data) => {
    made.plot?.destroy();
    made.scheme = scheme;
    made.plot = new uPlot({
      width: made.el.clientWidth || 120,
      height: HEIGHT,
      padding: [2, 0, 2, 0],
      legend: { show: false },
      cursor: { show: false },
      select: { show: false },
      bands: bands ? lines.slice(1).map((_, i) => ({ series: [i + 1, i + 2] })) : [],
      axes: [{ show: false }, { show: false }],
      scales: {
        x: { time: false },
        y: { range: (/** @type {any} */ u, /** @type {number} */ min, /** @type {number} */ max) => [0, u.top ?? Math.max(max ?? 0, 1e-3) * 1.1] },
      },
      series: [{}, ...lines.map((l) => ({
        label: l.name,
        stroke: colour(made.el, l.stroke),
        fill: l.fill && colour(made.el, l.fill),
        dash: l.dash,
        width: l.width ?? 1.5,
        points: { show: false },
      }))],
    }, [data.xs, ...data.ys], made.el);
    made.plot.top = data.top;
  };
  return {
    /** @param {HTMLElement} el @returns {Made} */
    create(el) {
      const made = /** @type {Made} */ ({ el, plot: null, scheme: -1, stamp: '', watch: new ResizeObserver(() => {
        if (made.plot && el.clientWidth && el.clientWidth !== made.plot.width) made.plot.setSize({ width: el.clientWidth, height: HEIGHT });
      }) });
      made.watch.observe(el);
      return made;
    },
    /** @param {HTMLElement} _ @param {Made} made @param {any} data */
    update(_, made, data) {
      if (made.scheme !== scheme) draw(made, data);
      else if (made.stamp !== data.stamp) made.plot.setData([data.xs, ...data.ys]);
      made.stamp = data.stamp;
    },
    /** @param {Made} made */
    destroy(made) {
      made.watch.disconnect();
      made.plot?.destroy();
    },
  };
}
