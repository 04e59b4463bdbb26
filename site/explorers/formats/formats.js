// <formats-explorer>: flip the bits of a number, or watch an FP32 being rounded. The address holds
// format=bf16&bits=3f80 or format=bf16&fp32=3f808000, and saturate=0 where that was switched off.

import { Explorer, bitRow, choice, h, put } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { FORMATS, canonical, decode, extreme, hex, neighbours, parse, round, widen } from "./numbers.js";
import { numberLine } from "./line.js";
import { approximate, exact, formula, fraction, place, power, shortest, steps } from "./words.js";

const FP32 = FORMATS.fp32;

const groupsOf = (format) => format.integer
  ? [{ name: "−128", kind: "s", size: 1 }, { name: "64 … 1", kind: "m", size: 7 }]
  : [
    { name: "sign", kind: "s", size: 1 },
    { name: "exponent", kind: "e", size: format.exponent },
    { name: "mantissa", kind: "m", size: format.mantissa },
    ...(format.unused ? [{ name: "not read", kind: "u", size: format.unused, fixed: true }] : []),
  ];

/** What a set bit adds, for its tooltip. */
function worth(format, bit) {
  if (bit === format.width - 1) return format.integer ? "worth −128" : "1 is negative";
  if (format.integer) return `worth ${2 ** bit}`;
  const place = bit - format.unused - format.mantissa;
  return place < 0 ? `worth 1/${2 ** -place}` : `worth ${2 ** place} in the exponent`;
}

function notesOf(format, bits, lost = 0) {
  if (bits === null) return [];
  const { exponent, mantissa } = decode(format, bits);
  const gone = lost ? `, ${Math.min(lost, format.mantissa)} dropped` : "";
  return format.integer ? ["", `= ${mantissa}`] : ["", `= ${exponent}`, `= ${mantissa}${gone}`];
}

// ── The table of formats: which bits, which range, and where the value lies ──

const FAR = { from: -152, to: 131 };
const percent = (value) => {
  const at = (Math.log2(Math.abs(value)) - FAR.from) / (FAR.to - FAR.from);
  return Math.max(0, Math.min(1, at)) * 100;
};

function formatRow(format) {
  const bar = groupsOf(format).map(({ kind, size }) => h("i", { class: kind, style: `width:${size / 0.32}%` }));
  const least = format.integer ? 1 : decode(format, 2 ** format.unused).value;
  const normal = format.integer ? 1 : 2 ** (1 - format.bias);
  const band = (kind, from, to) =>
    h("i", { class: kind, style: `left:${percent(from)}%;width:${percent(to) - percent(from)}%` });
  const most = decode(format, extreme(format, 0)).value;
  return [format.id, h("b", {}, format.name),
    h("span", { class: "bar", "aria-hidden": "true" }, bar),
    h("span", { class: "range", "aria-hidden": "true" }, band("thin", least, normal), band("full", normal, most))];
}

function formatTable(pick) {
  const { element, show } = choice({
    label: "Format", name: "format", look: "ut-family", options: Object.values(FORMATS).map(formatRow), pick,
  });
  const ticks = [-38, -19, 0, 19, 38].map((ten) =>
    h("i", { style: `left:${percent(10 ** ten)}%` }, ten ? ["10", h("sup", {}, String(ten).replace("-", "−"))] : "1"));
  element.append(h("p", { "aria-hidden": "true" }, h("b", {}), h("span", { class: "bar" }, "bits"), h("span", { class: "range" }, ticks)));
  return { element, show(id, value) {
    show(id);
    element.classList.toggle("nowhere", Number.isNaN(value));
    element.style.setProperty("--at", `${value === 0 ? 0 : Number.isNaN(value) ? 50 : percent(value)}%`);
  } };
}

// ── What is worth trying: patterns of a format, and FP32 inputs on their way into it ──

function patternsToTry(format) {
  if (format.integer) return [["−128", 128], ["−1", 255], ["0", 0], ["1", 1], ["127", 127]];
  const last = extreme(format, 0);
  const unit = 2 ** format.unused;
  const list = [
    ["0", 0], ["−0", 2 ** (format.width - 1)], ["smallest", unit],
    ["smallest normal", unit * 2 ** format.mantissa], ["0.1", round(format, parse("0.1")).bits],
    ["1", round(format, parse("1")).bits], ["largest", last],
  ];
  if (format.specials === "ieee") list.push(["infinity", last + unit], ["NaN", last + unit + unit * 2 ** (format.mantissa - 1)]);
  else list.push(["NaN", last + unit]);
  return list;
}

function inputsToTry(format) {
  if (format.integer) return ["0.5", "1.5", "2.5", "127.6", "-128.5", "nan"].map((text) => [text.replace("-", "−"), parse(text)]);
  const bits = (value) => new Uint32Array(new Float32Array([value]).buffer)[0];
  const list = [["0.1", parse("0.1")]];
  if (format !== FP32) {
    const last = 2 ** -format.mantissa;
    const top = extreme(format, 0);
    const most = decode(format, top);
    list.push(
      ["tie, down to even", bits(1 + last / 2)], ["tie, up to even", bits(1 + 1.5 * last)],
      ["carry", bits(2 - last / 4)], ["largest", bits(most.value)],
      ["a little too large", bits(most.value + 0.75 * 2 ** most.power)],
      ["half the smallest", bits(decode(format, 2 ** format.unused).value / 2)],
    );
  }
  return [...list, ["infinity", parse("inf")], ["NaN", parse("nan")]];
}

class FormatsExplorer extends Explorer {
  static parts = {
    bits: ["[aria-label='Pattern and value']", ".ut-line", ".ut-steppers"],
    round: ["[aria-label='FP32 input']", "[aria-label='Pattern and value']"],
    formats: [".ut-family", "[aria-label='Pattern and value']"],
  };

  get challenges() { return CHALLENGES; }

  read(params) {
    const format = FORMATS[params.get("format")];
    if (!format) return null;
    const pattern = (name, width) => {
      const text = (params.get(name) ?? "").replace(/^0x/i, "");
      return /^[0-9a-f]{1,8}$/i.test(text) && parseInt(text, 16) < 2 ** width ? parseInt(text, 16) : null;
    };
    const fp32 = pattern("fp32", 32);
    const bits = pattern("bits", format.width);
    return {
      format: format.id, mode: fp32 === null ? "bits" : "round", fp32: fp32 ?? 0, typed: "",
      bits: bits === null ? round(format, parse("1")).bits : canonical(format, bits),
      saturate: params.get("saturate") !== "0",
    };
  }

  write({ format, mode, bits, fp32, saturate }) {
    const digits = mode === "round" ? hex(FP32, fp32) : hex(FORMATS[format], bits);
    const off = FORMATS[format].specials === "fn" && !saturate ? [["saturate", "0"]] : [];
    return [["format", format], [mode === "round" ? "fp32" : "bits", digits.slice(2)], ...off];
  }

  build() {
    this.table = formatTable((id) => this.pickFormat(FORMATS[id]));
    this.modes = choice({
      label: "What to do", name: "mode", pick: (mode) => this.pickMode(mode),
      options: [["bits", "Flip bits"], ["round", "Round from FP32"]],
    });
    this.tries = h("p", { class: "ut-tries", role: "group", "aria-label": "Values to try" });
    this.field = h("input", {
      id: "ut-fp32", type: "text", size: 18, maxlength: 80, autocomplete: "off", spellcheck: "false",
      "aria-describedby": "ut-fp32-help", oninput: () => this.type(this.field.value),
    });
    this.help = h("span", { id: "ut-fp32-help", class: "ut-soft" });
    this.saturate = h("input", { type: "checkbox", role: "switch", onchange: () => this.change({ saturate: this.saturate.checked }) });
    this.switch = h("label", { class: "ut-switch" }, this.saturate, " saturate at the largest number, as PyTorch does");
    this.input = bitRow({
      label: "Bits of the FP32 input", groups: groupsOf(FP32), worth: (bit) => worth(FP32, bit),
      flip: (bit) => this.change({ fp32: (this.state.fp32 ^ (1 << bit)) >>> 0, typed: "" }),
    });
    this.steps = h("ol", { class: "ut-steps" });
    this.rounding = h("section", { class: "ut-panel", "aria-label": "FP32 input" },
      h("p", { class: "ut-ask" }, h("label", { for: "ut-fp32" }, "FP32"), this.field, this.help),
      this.input.element, this.switch, this.steps);
    this.pattern = h("section", { class: "ut-panel", "aria-label": "Pattern and value" });
    this.value = h("p", { class: "ut-value" });
    this.sum = h("p", { class: "ut-sum" });
    this.facts = h("dl", { class: "ut-facts" });
    this.line = h("div", { class: "ut-line" });
    this.caption = h("p", { class: "ut-soft" });
    const step = (way, sign) => h("button", { type: "button", class: "ut-button", onclick: () => this.step(way) }, sign, " ", h("span", {}));
    this.below = step("below", "←");
    this.above = step("above", "→");
    return [
      this.table.element,
      h("div", { class: "ut-bar" }, this.modes.element, this.tries),
      this.rounding, this.pattern,
      this.line, h("div", { class: "ut-steppers" }, this.below, this.caption, this.above), this.facts,
    ];
  }

  /** The pattern on show; null where INT8 is asked for a NaN. */
  get bits() {
    const { format, mode, bits, fp32, saturate } = this.state;
    return mode === "round" ? round(FORMATS[format], fp32, saturate).bits : bits;
  }

  get fp32() {
    const { format, mode, fp32 } = this.state;
    return mode === "round" ? fp32 : widen(FORMATS[format], this.bits);
  }

  pickFormat(format) {
    const bits = round(format, this.fp32, this.state.saturate).bits ?? 0;
    this.change({ format: format.id, bits });
  }

  pickMode(mode) {
    this.change({ mode, bits: this.bits ?? 0, fp32: this.fp32, typed: "" });
  }

  type(text) {
    const fp32 = parse(text);
    this.field.setAttribute("aria-invalid", fp32 === null);
    if (fp32 === null) this.help.textContent = "Not a number yet: try 0.1, 1e-3, inf, nan, or a pattern such as 0x3f808000.";
    else this.change({ fp32, typed: text });
  }

  step(way) {
    const { format, mode, fp32 } = this.state;
    const from = mode === "round" ? neighbours(FP32, fp32) : neighbours(FORMATS[format], this.bits);
    if (from[way] !== null) this.change(mode === "round" ? { fp32: from[way], typed: "" } : { bits: from[way] });
  }

  flip(bit) {
    this.change({ bits: (this.state.bits ^ (1 << bit)) >>> 0 });
  }

  show(state) {
    const format = FORMATS[state.format];
    const rounding = state.mode === "round";
    const { bits } = this;
    const number = bits === null ? { kind: "none", value: NaN } : decode(format, bits);
    this.table.show(format.id, number.value);
    this.modes.show(state.mode);
    this.showTries(format, rounding);
    this.rounding.hidden = !rounding;
    if (rounding) this.showRounding(format, state);
    this.showPattern(format, bits, number, rounding);
    this.showSteppers(format, bits, state);
    const line = numberLine(format, bits, rounding ? decode(FP32, state.fp32) : null, this.clientWidth);
    put(this.line, line.drawing);
    put(this.caption, line.caption);
    this.showFacts(format, bits, number);
  }

  showTries(format, rounding) {
    const key = `${format.id} ${rounding}`;
    if (this.tries.dataset.key === key) return;
    this.tries.dataset.key = key;
    const list = rounding ? inputsToTry(format) : patternsToTry(format);
    put(this.tries, ...list.map(([name, pattern]) => h("button", {
      type: "button", class: "ut-button", onclick: () => this.change(rounding ? { fp32: pattern, typed: "" } : { bits: pattern }),
    }, name)));
  }

  showRounding(format, { fp32, typed, saturate }) {
    const result = round(format, fp32, saturate);
    const lost = Math.min(result.shift ?? 0, 23);
    if (!typed) this.field.value = shortest(fp32);
    this.field.setAttribute("aria-invalid", false);
    put(this.help, h("code", {}, hex(FP32, fp32)), " = ", approximate(decode(FP32, fp32).value, 17));
    this.input.show(fp32, notesOf(FP32, fp32, lost), lost);
    this.switch.hidden = format.specials !== "fn";
    this.saturate.checked = saturate;
    put(this.steps, ...steps(format, result).map((step) => h("li", {}, step)));
  }

  showPattern(format, bits, number, rounding) {
    this.pattern.classList.toggle("aligned", rounding);
    const key = `${format.id} ${rounding}`;
    if (this.pattern.dataset.key !== key) {
      this.pattern.dataset.key = key;
      this.row = bitRow({
        label: `Bits of the ${format.name}`, groups: groupsOf(format), worth: (bit) => worth(format, bit),
        flip: rounding ? null : (bit) => this.flip(bit),
      });
      const hint = rounding ? null : h("p", { class: "ut-soft ut-hint" }, "Click a bit, or ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " to move and ", h("kbd", {}, "Space"), " to flip.");
      put(this.pattern, this.row.element, hint, this.value, this.sum);
    }
    this.row.show(bits, notesOf(format, bits));
    const digits = bits === null ? "no pattern" : exact(number);
    const long = digits.length > 24;
    put(this.value, 
      h("code", {}, bits === null ? format.name : hex(format, bits)), h("span", {}, long ? "≈" : "="),
      h("strong", {}, long ? approximate(number.value, 10) : digits),
      h("em", { class: `ut-kind ${number.kind}` }, number.kind === "none" ? "not representable" : number.kind === "nan" ? "NaN" : number.kind),
    );
    put(this.sum, ...formula(format, number));
  }

  showSteppers(format, bits, { mode, fp32 }) {
    const moved = mode === "round" ? FP32 : format;
    const from = mode === "round" ? neighbours(FP32, fp32) : neighbours(format, bits);
    for (const [button, to, way] of [[this.below, from.below, "down"], [this.above, from.above, "up"]]) {
      button.disabled = to === null;
      const said = mode === "round" ? `FP32 step ${way}` : to === null ? "nothing there" : hex(moved, to);
      button.lastChild.textContent = said;
      button.setAttribute("aria-label", `${said}: ${to === null ? `nothing further ${way}` : `one step ${way}, to ${approximate(decode(moved, to).value, 9)}`}`);
    }
  }

  showFacts(format, bits, number) {
    const rows = [];
    const add = (name, ...shown) => rows.push(h("div", {}, h("dt", {}, name), h("dd", {}, shown)));
    const finite = number.power !== undefined;
    if (finite) {
      if (exact(number).length > 24) add("Exactly", exact(number));
      if (number.value !== 0 && !format.integer) add("As a fraction", fraction(number));
      add("Spacing here", format.integer ? "1" : [power(number.power), " = ", place(number.power)]);
    }
    const near = bits === null ? {} : neighbours(format, bits);
    for (const [name, to] of [["Next below", near.below], ["Next above", near.above]]) {
      if (to != null) add(name, h("code", {}, hex(format, to)), " = ", approximate(decode(format, to).value, 12));
    }
    if (!format.dtype) add("In PyTorch", "no dtype: a way to multiply. ", h("code", {}, 'torch.backends.cuda.matmul.fp32_precision = "tf32"'));
    else if (bits !== null) add("In PyTorch", h("code", {}, `torch.tensor(${hex(format, bits)}, dtype=torch.uint${format.width}).view(${format.dtype})`));
    put(this.facts, ...rows);
  }

  say({ format: id, mode, fp32, saturate }) {
    const format = FORMATS[id];
    const { bits } = this;
    if (bits === null) return `${format.name} has no pattern for NaN.`;
    const number = decode(format, bits);
    const what = `${format.name} ${hex(format, bits)}, ${number.kind === "nan" ? "not a number" : `${number.kind}, ${approximate(number.value, 10)}`}.`;
    if (mode === "bits") return what;
    const { side } = round(format, fp32, saturate);
    return `FP32 ${hex(FP32, fp32)} becomes ${what}${side === "tie" ? " It was a tie." : ""}`;
  }
}

customElements.define("formats-explorer", FormatsExplorer);
