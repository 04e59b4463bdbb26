// The number line around one value: its neighbours to scale, and the FP32 that was rounded to it.

import { svg } from "../explorer.js";
import { decode, extreme, hex, neighbours } from "./numbers.js";
import { approximate, power } from "./words.js";

const AXIS = 74;
const HEIGHT = 118;
const DIGITS = { fp32: 10, tf32: 6, fp16: 6, bf16: 5, e4m3fn: 5, e5m2: 5, int8: 4 };

/** Where a pattern stands; infinity one step beyond the largest, where rounding begins to reach it. */
function position(format, bits) {
  const { value, sign } = decode(format, bits);
  if (Number.isFinite(value)) return value;
  const most = decode(format, extreme(format, 0));
  return (sign ? -1 : 1) * (most.value + 2 ** most.power);
}

function around(format, bits, reach) {
  const points = [bits];
  for (let i = 0; i < reach; i += 1) {
    const { below } = neighbours(format, points[0]);
    if (below !== null) points.unshift(below);
    const { above } = neighbours(format, points.at(-1));
    if (above !== null) points.push(above);
  }
  return points.map((at) => ({ bits: at, at: position(format, at), ...decode(format, at) }));
}

/** `input` is the decoded FP32 that was rounded, or null. */
export function numberLine(format, bits, input, width) {
  if (bits === null || decode(format, bits).kind === "nan") return { drawing: null, caption: "NaN has no place on the number line: it is not less, equal or greater than anything." };
  const points = around(format, bits, width < 480 ? 1 : 2);
  const [low, high] = [points[0].at, points.at(-1).at];
  const number = (value) => approximate(value, DIGITS[format.id]);
  const labels = points.map((p) => [hex(format, p.bits), number(p.value)]);
  const wide = labels.map((pair) => 7.2 * Math.max(pair[0].length, pair[1].length));
  const side = Math.max(24, wide[0] / 2, wide.at(-1) / 2);
  const x = (value) => side + ((value - low) / (high - low)) * (width - 2 * side);
  const text = (at, y, shown, kind = "") => svg("text", { x: at, y, class: kind }, shown);

  const stagger = points.some((p, i) => i && x(p.at) - x(points[i - 1].at) < (wide[i] + wide[i - 1]) / 2 + 6);
  const marks = points.map((p, i) => {
    const out = stagger && i % 2 ? 16 : 0;
    const here = p.bits === bits ? "here" : "";
    return svg("g", { class: here }, svg("line", { x1: x(p.at), x2: x(p.at), y1: AXIS - 9 - out, y2: AXIS + 9 + out, class: p.kind === "infinity" ? "dash" : "" }),
      svg("circle", { cx: x(p.at), cy: AXIS, r: here ? 6 : 4 }),
      text(x(p.at), AXIS - 16 - out, labels[i][0], "small"), text(x(p.at), AXIS + 24 + out, labels[i][1]));
  });
  const halves = points.slice(1).map((p, i) => {
    const half = x((p.at + points[i].at) / 2);
    return svg("line", { x1: half, x2: half, y1: AXIS - 5, y2: AXIS + 5, class: "dash" });
  });
  const drawn = [svg("line", { x1: 0, x2: width, y1: AXIS, y2: AXIS, class: "axis" }), halves];

  let said = `${points.map((p) => number(p.value)).join(", ")}; here ${number(decode(format, bits).value)}.`;
  if (input && !Number.isNaN(input.value)) {
    const off = input.value < low ? -1 : input.value > high ? 1 : 0;
    const at = off ? (off < 0 ? 9 : width - 9) : x(input.value);
    const to = x(position(format, bits));
    drawn.push(svg("g", { class: "input" },
      svg("path", { d: off ? `M${at + off * 7} ${AXIS}l${-off * 9}-7v14z` : `M${at} ${AXIS - 8}l7 8-7 8-7-8z` }),
      Math.abs(at - to) > 12 ? svg("path", { class: "arc", d: `M${at} ${AXIS - 10}C${at} 20 ${to} 20 ${to} ${AXIS - 11}` }) : []));
    said += ` The FP32 input ${approximate(input.value, 10)} ${off ? "lies outside of what is drawn" : "lies among them"}.`;
  }
  drawn.push(marks);
  const top = input ? 20 : 34;
  return {
    drawing: svg("svg", { viewBox: `0 ${top} ${width} ${HEIGHT - top}`, height: HEIGHT - top, role: "img", "aria-label": `Number line. ${said}` }, drawn),
    caption: input ? "Dots: what the format can hold. Dashes: halfway. Diamond: the FP32." : "Dots: what the format can hold, to scale. Dashes: halfway between them.",
  };
}
