// The part of uPlot that the page uses. Its own declarations are many times as long, and its source is not written to be checked.
declare const uPlot: new (options: object, columns: any[], element: HTMLElement) => any;
export default uPlot;
