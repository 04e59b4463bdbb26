// A captured graph as a drawing: inputs round, what needs a tangent with cut corners, saved with a second frame.

import { h, svg } from "../explorer.js";
import { layout } from "./layers.js";

const LINE = 14;
const RISE = 32;
const FITS = 24;
const FINGER = 44;

/** Nodes up to which a graph is drawn; a larger one is a list. */
export const MOST_DRAWN = 160;

const fit = (text) => (text.length <= FITS ? text : `${text.slice(0, FITS - 1)}…`);

/** What stands in a box: [class, text] for each line. */
function content({ name, kind, call, reads, size }, note) {
  if (kind === "o") return [["name", "output"], ["of", `returns ${reads.length}`]];
  const plain = name.replace(/_\d+$/, "");
  const [target] = call.split("(");
  const inside = call.slice(target.length);
  const constants = inside.replace(/[·,\s[\]()]/g, "");
  const said = plain === target ? (constants ? inside : "") : constants ? call : target;
  return [["name", fit(name)], ...(said ? [["", fit(said)]] : []), ...(size ? [["of", fit(size)]] : []), ...note];
}

/** A box as a path. `corner` is "round", "cut" or none. */
function outline(x, y, width, height, corner) {
  if (!corner) return `M${x} ${y}h${width}v${height}h${-width}z`;
  const r = corner === "round" ? Math.min(height / 2, 15) : 7;
  const bend = (dx, dy) => (corner === "round" ? `a${r} ${r} 0 0 1 ${dx} ${dy}` : `l${dx} ${dy}`);
  const [across, down] = [width - 2 * r, height - 2 * r];
  return `M${x + r} ${y}h${across}${bend(r, r)}v${down}${bend(-r, r)}h${-across}${bend(-r, -r)}v${-down}${bend(r, -r)}z`;
}

/**
 * An svg of the nodes. marks(i) gives { look, corner, double, note }: its class, its corners, whether it
 * has a second frame, and lines to add.
 */
export function drawGraph(nodes, marks, title) {
  const marked = nodes.map((node, i) => ({ note: [], ...marks(i) }));
  const boxes = nodes.map((node, i) => content(node, marked[i].note));
  const widths = boxes.map((lines) => 20 + 7.3 * Math.max(...lines.map(([, text]) => text.length)));
  const heights = boxes.map((lines) => 10 + LINE * lines.length);
  const last = nodes.flatMap(({ kind }, i) => (kind === "o" ? [i] : []));
  const { rows, middle, routes, width } = layout(nodes.map(({ reads }) => reads), widths, last);
  const tops = [];
  const bottoms = [];
  let y = 5;
  for (const row of rows) {
    tops.push(y);
    bottoms.push(y += Math.max(...row.map((i) => heights[i])));
    y += RISE;
  }
  const level = new Map(rows.flatMap((row, at) => row.map((i) => [i, at])));
  const edges = routes.map(({ from, to, xs }) => {
    const start = level.get(from);
    const steps = [`M${xs[0] + 4} ${tops[start] + heights[from]}`];
    xs.slice(1).forEach((end, k) => {
      const at = start + k;
      const stop = tops[at + 1] - (k === xs.length - 2 ? 5 : 0);
      const half = (bottoms[at] + stop) / 2;
      steps.push(`V${bottoms[at]}C${xs[k] + 4} ${half} ${end + 4} ${half} ${end + 4} ${stop}`);
    });
    return [svg("path", { class: "edge", "data-from": from, "data-to": to, d: steps.join("") }), svg("path", { class: "tip", d: `M${xs.at(-1) + 4} ${tops[level.get(to)]}l-4 -7h8z` })];
  });
  const first = nodes.findIndex(({ line }) => line);
  const shapes = nodes.map((node, i) => {
    const { look, corner, double } = marked[i];
    const [x, top] = [middle[i] - widths[i] / 2 + 4, tops[level.get(i)]];
    const [wide, high] = [Math.max(FINGER, widths[i]), Math.max(FINGER, heights[i])];
    return svg("g", { class: `node ${look ?? ""}`, "data-name": node.name, ...option(node, i === first) },
      node.line ? svg("rect", { class: "reach", x: middle[i] + 4 - wide / 2, y: top + (heights[i] - high) / 2, width: wide, height: high }) : null,
      svg("path", { d: outline(x, top, widths[i], heights[i], corner) }),
      double ? svg("path", { class: "double", d: outline(x + 3, top + 3, widths[i] - 6, heights[i] - 6, corner) }) : null,
      boxes[i].map(([kind, text], line) => svg("text", { class: kind, x: middle[i] + 4, y: top + 17 + LINE * line }, text)));
  });
  const [wide, high] = [Math.ceil(width + 8), y - RISE + 6];
  const drawn = svg("svg", { role: first < 0 ? "img" : "presentation", "aria-label": first < 0 ? title : null, width: wide, height: high, viewBox: `0 0 ${wide} ${high}` }, edges, shapes);
  return first < 0 ? drawn : h("div", { role: "listbox", "aria-label": title }, drawn);
}

/** What makes a node one that can be pointed at: it belongs to a line. */
function option({ line }, first) {
  return line ? { role: "option", tabindex: first ? 0 : -1, "data-lines": line } : null;
}

/** A graph that is too large to be drawn, as rows. */
export function listed(nodes, marks, title) {
  const first = nodes.findIndex(({ line }) => line);
  return [h("p", { class: "ut-soft" }, `${nodes.length} nodes, too many to draw: each reads some of those above it.`),
    h("ol", { class: "cp-rows", role: first < 0 ? null : "listbox", "aria-label": first < 0 ? null : title }, nodes.map((node, i) => {
      const { look, note = [] } = marks(i);
      const said = content(node, note);
      return h("li", { class: `node ${look ?? ""}`, "data-name": node.name, ...option(node, i === first) }, said.map(([kind, text]) => h("span", { class: kind }, text)), node.line ? h("span", { class: "of" }, `line ${node.line}`) : null);
    }))];
}

/** The same in words, for those who do not see it. */
export const spoken = (nodes) => h("ul", { class: "ut-unseen" }, nodes.map(({ name, reads }) =>
  h("li", {}, reads.length ? `${name} reads ${reads.map((i) => nodes[i].name).join(", ")}` : name)));
