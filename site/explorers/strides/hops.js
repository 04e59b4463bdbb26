// The way to one element, drawn over the strip: from the offset one hop per dimension.

import { svg } from "../explorer.js";

const FLOOR = 54;
const HEIGHT = { bare: 62, ticks: 78 };

/**
 * `layout` and `index` of the element; `place(cell)` is where a cell's middle is, in pixels; the drawing
 * is `width` wide. With `ticks`, an axis stands for a strip of several lines.
 */
export function hops({ stride, offset }, index, { cells, width, place, ticks }) {
  const drawn = [];
  const height = ticks ? HEIGHT.ticks : HEIGHT.bare;
  if (ticks) {
    drawn.push(svg("line", { x1: place(0), x2: place(cells - 1), y1: FLOOR, y2: FLOOR, class: "axis" }));
    for (let cell = 0; cell < cells; cell += 1) {
      const long = cell % ticks === 0;
      drawn.push(svg("line", { x1: place(cell), x2: place(cell), y1: FLOOR - (long ? 5 : 2), y2: FLOOR + (long ? 3 : 0), class: "axis" }));
      if (long) drawn.push(svg("text", { x: place(cell), y: FLOOR + 15, class: "tick" }, cell));
    }
  }
  let at = offset;
  let level = 0;
  const label = (x, y, text, kind) => svg("text", { x: Math.min(Math.max(x, 24), width - 24), y, class: kind }, text);
  const marks = [svg("path", { class: "start", d: `M${place(at)} ${FLOOR}l-5 -8h10z` })];
  index.forEach((i, d) => {
    const to = at + i * stride[d];
    if (to !== at) {
      const [a, b] = [place(at), place(to)];
      const top = Math.max(16, FLOOR - 12 - Math.min(26, (b - a) / 3));
      drawn.push(svg("path", { class: `hop d${d % 3}`, d: `M${a} ${FLOOR - 2}C${a} ${top - 6} ${b} ${top - 6} ${b} ${FLOOR - 3}` }));
      marks.push(label((a + b) / 2, Math.max(11, top - 4), `${i}·${stride[d]}`, `d${d % 3}`));
      level += 1;
    }
    at = to;
  });
  marks.push(svg("path", { class: "end", d: `M${place(at)} ${FLOOR}l-5 -9h10z` }));
  if (ticks) marks.push(svg("text", { x: place(at), y: FLOOR + 15, class: "end" }, at));
  const said = index.map((i, d) => `${i} steps of ${stride[d]}`).join(", ");
  return svg("svg", { class: "ut-hops", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `From cell ${offset}${level ? `, ${said}` : ""}, to cell ${at}.` }, drawn, marks);
}
