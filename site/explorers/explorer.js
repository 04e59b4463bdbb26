// What all explorers share: building elements, rows of bits, choices, and a state that lives in the
// address and is spoken. README.md beside this file says how to make a new one.

import { Past, reachedBefore } from "./past.js";

/** An element. `on…` props are listeners, null and false are left out, other props are attributes. */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** The same, for the elements of a drawing. */
export const svg = (tag, props, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

// Several explorers may stand on a page: what an element is called by others gets its owner's number.
const CALLED = new Set(["id", "for", "name", "aria-describedby"]);
let owner = "";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (owner && CALLED.has(name) && value) element.setAttribute(name, value + owner);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  return put(element, children);
}

/** Give an element these children and no others; lists are flattened, null is left out. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((child) => child != null));
  return element;
}

/** One of several, as native radio buttons. `options` are [value, ...what its label shows]. */
export function choice({ label, name, options, pick, look = "ut-tabs" }) {
  const inputs = options.map(([value]) => h("input", { type: "radio", name, value, onchange: () => pick(value) }));
  const rows = options.map(([, ...shown], i) => h("label", {}, inputs[i], shown));
  const element = h("fieldset", { class: look }, h("legend", { class: "ut-unseen" }, label), rows);
  const show = (value) => inputs.forEach((input) => { input.checked = input.value === value; });
  return { element, show };
}

/**
 * A row of bits in labelled groups. Each group is { name, kind, size }; kind is its colour class.
 * With `flip`, each bit is a switch; only one is in the tab order, arrow keys move on.
 * show(bits, notes, lost): the pattern, a note per group, and how many low bits are marked as lost.
 */
export function bitRow({ label, groups, worth, flip }) {
  const total = groups.reduce((sum, group) => sum + group.size, 0);
  const cells = [];
  const notes = [];
  const parts = groups.map(({ name, kind, size, fixed }) => {
    const note = h("span", {});
    notes.push(note);
    const own = Array.from({ length: size }, () => {
      const bit = total - 1 - cells.length;
      const live = flip && !fixed;
      const cell = h(live ? "button" : "span", live ? {
        type: "button", role: "switch", tabindex: cells.length ? -1 : 0, title: worth?.(bit) ?? null,
        "aria-label": `bit ${bit}, ${name}`, onclick: () => flip(bit), onfocus: () => rove(cell),
      } : { "aria-hidden": "true" });
      cell.className = `ut-bit ${kind}`;
      cells.push(cell);
      return cell;
    });
    return h("div", { class: `ut-field ${kind}`, style: `--n:${size}`, role: "group", "aria-label": name },
      h("p", {}, h("b", {}, name), " ", note), h("div", { class: "ut-cells" }, own));
  });
  const buttons = cells.filter((cell) => cell.tagName === "BUTTON");
  function rove(to) {
    for (const button of buttons) button.tabIndex = button === to ? 0 : -1;
  }
  function move(event) {
    const at = buttons.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    buttons[to]?.focus();
  }
  const text = h("span", { class: "ut-unseen" });
  const element = h("div", { class: "ut-bits", role: "group", "aria-label": label, onkeydown: move }, text, parts);
  function show(bits, said = [], lost = 0) {
    const shown = bits === null ? "?".repeat(total) : bits.toString(2).padStart(total, "0");
    if (!flip) text.textContent = shown;
    cells.forEach((cell, i) => {
      if (cell.textContent !== shown[i]) cell.textContent = shown[i];
      if (cell.tagName === "BUTTON") cell.setAttribute("aria-checked", shown[i] === "1");
      cell.classList.toggle("one", shown[i] === "1");
      cell.classList.toggle("lost", i >= total - lost);
    });
    notes.forEach((note, i) => { note.textContent = said[i] ?? ""; });
  }
  return { element, show };
}

/** Controls that go through many values on the way to one: what they do in one go is one step to undo. */
const FLOWING = "input:not([type=radio], [type=checkbox]), textarea, [role=slider], [role=spinbutton]";
const STROKE = 700;
const MOST_WRITTEN = 120;

/**
 * The element itself. A subclass gives
 *   read(params)   the state that an address or the element's attributes describe, or null
 *   write(state)   what the address should say, as [name, value] pairs
 *   build()        its elements, once
 *   show(state)    brings them up to date; called again when the width changes
 *   say(state)     one sentence for the live region
 *   static parts   for small views: the selectors of what each of them shows, by its name
 * and calls change({…}) when somebody acts. Where something moves in steps it also gives
 *   advance(state) what changes in the next step, or null at the end
 *   rewind(state)  what changes to begin anew, or null where nothing moves
 *   pace           milliseconds of a step
 * and, where it has some, challenges: a list of { id, goal, start, reached(state) }, start being an address.
 *
 * With small="name" it is a view in somebody's prose: it shows that part alone, in the state of the
 * attribute `state`, leaves the address to the page, and says in an event `turned` what it would hold.
 */
export class Explorer extends HTMLElement {
  #past = new Past();
  #timer = null;
  #taken = null;
  #late = null;
  #written = [];

  connectedCallback() {
    if (this.live) return;
    const owners = new Set([...document.querySelectorAll(".ut-explorer")].map(({ owner }) => owner));
    this.owner = "";
    for (let number = 1; owners.has(this.owner); number++) this.owner = `-${number}`;
    this.small = this.getAttribute("small");
    this.live = h("p", { class: "ut-unseen", role: "status" });
    this.state = this.#first();
    [this.opened, this.first] = [this.state, this.#fragment()];
    this.classList.add("ut-explorer");
    put(this, this.#own(() => (this.small === null ? [this.#tools(), this.build(), this.#challenges()] : this.#parts(this.build()))), this.live);
    this.#draw();
    this.#showTools();
    if (this.small === null) addEventListener("hashchange", () => {
      const state = this.#addressed();
      if (state) this.#alter(state);
    });
    let width = this.clientWidth;
    new ResizeObserver(() => {
      if (this.clientWidth !== width) this.#draw();
      width = this.clientWidth;
    }).observe(this);
  }

  disconnectedCallback() {
    this.#halt();
  }

  get pace() { return 700; }

  get challenges() { return []; }

  change(part) {
    this.#halt();
    this.#alter({ ...this.state, ...part }, this.#flows());
    this.#address();
  }

  // ── What every explorer has above and below: undo, play, a link; challenges ──

  #tools() {
    const button = (act, ...text) => h("button", { type: "button", class: "ut-button", onclick: (event) => {
      if (event.currentTarget.getAttribute("aria-disabled") !== "true") act();
    } }, text);
    const sign = (text) => h("span", { "aria-hidden": "true" }, text);
    const go = (state) => {
      this.#halt();
      this.#take(state);
      this.#address();
    };
    this.undo = button(() => go(this.#past.back(this.state)), sign("↶ "), "Undo");
    this.redo = button(() => go(this.#past.on(this.state)), sign("↷ "), "Redo");
    this.reset = button(() => this.change(this.opened), "Reset");
    this.play = this.advance ? button(() => this.#play()) : null;
    this.copied = h("input", { type: "text", readonly: true, hidden: true, "aria-label": "Link to what is shown" });
    this.goal = h("p", { class: "ut-goal", hidden: true });
    return [h("p", { class: "ut-tools", role: "group", "aria-label": "This drawing" },
      this.play, this.undo, this.redo, this.reset, button(() => this.#copy(), "Copy link"), this.copied), this.goal];
  }

  #challenges() {
    if (!this.challenges.length) return null;
    this.won = reachedBefore(`ut-reached ${this.localName}`);
    this.marks = this.challenges.map(() => h("b", {}));
    return h("section", { class: "ut-panel ut-challenges", "aria-label": "Challenges" }, h("p", { class: "ut-head" }, h("b", {}, "Challenges")),
      h("ol", {}, this.challenges.map((challenge, i) => h("li", {}, this.marks[i], h("span", {}, challenge.goal),
        h("button", { type: "button", class: "ut-button", "aria-label": `Take it: ${challenge.goal}`, onclick: () => this.#accept(challenge) }, "Take it")))));
  }

  #accept(challenge) {
    this.#taken = challenge;
    this.change(this.read(new URLSearchParams(challenge.start)));
    this.scrollIntoView?.({ block: "start" });
  }

  #showTools() {
    if (this.small !== null) return;
    const off = (button, is) => button.setAttribute("aria-disabled", is);
    off(this.undo, !this.#past.before.length);
    off(this.redo, !this.#past.after.length);
    off(this.reset, this.#fragment() === this.first);
    if (this.play) {
      const runs = this.#timer !== null;
      this.play.hidden = !runs && !this.advance(this.state) && !this.rewind(this.state);
      put(this.play, h("span", { "aria-hidden": "true" }, runs ? "❚❚ " : "▶ "), runs ? "Pause" : "Play");
    }
    this.copied.hidden = true;
    this.challenges.forEach(({ id }, i) => put(this.marks[i], this.won.has(id) ? ["✓", h("span", { class: "ut-unseen" }, " reached: ")] : h("span", { "aria-hidden": "true" }, "○")));
    const done = this.#taken && this.#taken.reached(this.state);
    this.goal.hidden = !this.#taken;
    this.goal.classList.toggle("done", Boolean(done));
    put(this.goal, this.#taken && [h("b", {}, done ? "✓ Reached: " : "Challenge: "), this.#taken.goal]);
  }

  async #copy() {
    const link = new URL(`#${this.#fragment()}`, location.href).href;
    let words = "The link is copied.";
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      this.copied.hidden = false;
      this.copied.value = link;
      this.copied.select();
      words = "Copy the link from the field.";
    }
    this.live.textContent = words;
    this.dispatchEvent(new CustomEvent("ut-copied", { detail: link }));
  }

  #play() {
    if (this.#timer !== null) return this.#halt();
    let first = true;
    const step = () => {
      const part = first && !this.advance(this.state) ? this.rewind(this.state) : this.advance(this.state);
      if (part) this.#alter({ ...this.state, ...part }, !first);
      first = false;
      if (!part || !this.advance(this.state)) this.#halt();
    };
    this.#timer = setInterval(step, this.pace);
    step();
    return this.#showTools();
  }

  #halt() {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.#showTools();
    this.#address();
    this.live.textContent = this.say(this.state);
  }

  /** Is this change one more step of the same stroke: a drag, or a word being typed? */
  #flows() {
    const now = performance.now();
    const held = this.contains(document.activeElement) && document.activeElement.matches(FLOWING) ? document.activeElement : null;
    const same = held !== null && held === this.held && now - this.when < STROKE;
    [this.held, this.when] = [held, now];
    return same;
  }

  #first() {
    if (this.small !== null) {
      const state = this.read(new URLSearchParams(this.getAttribute("state")));
      if (!state) throw new Error(`no state of ${this.tagName}: ${this.getAttribute("state")}`);
      return state;
    }
    return this.#addressed() ?? this.read(new Map([...this.attributes].map((a) => [a.name, a.value])));
  }

  /** Of all that was built, what a small view shows. */
  #parts(all) {
    const wanted = this.constructor.parts[this.small];
    if (!wanted) throw new Error(`no part of ${this.tagName}: ${this.small}`);
    const whole = put(h("div"), all);
    const found = wanted.map((selector) => whole.querySelector(selector));
    // No landmarks: a page with several views would have each of them several times.
    for (const section of whole.querySelectorAll("section")) section.setAttribute("role", "group");
    if (found.includes(null)) throw new Error(`no ${wanted[found.indexOf(null)]} in ${this.tagName}`);
    return found;
  }

  #own(make) {
    owner = this.owner;
    try {
      return make();
    } finally {
      owner = "";
    }
  }

  #draw() {
    this.#own(() => this.show(this.state));
  }

  #addressed() {
    return this.read(new URLSearchParams(location.hash.slice(1)));
  }

  #fragment() {
    return String(new URLSearchParams(this.write(this.state)));
  }

  /** Into the address. Browsers take so many a second and no more: what a drag leaves over is written when it rests. */
  #address() {
    if (this.small !== null) {
      this.dispatchEvent(new CustomEvent("turned", { detail: this.#fragment() }));
      return;
    }
    clearTimeout(this.#late);
    const now = performance.now();
    this.#written = this.#written.filter((when) => now - when < 10_000);
    try {
      if (this.#written.length >= MOST_WRITTEN) throw new DOMException("", "SecurityError");
      this.#written.push(now);
      // Replaced, not pushed: Back leaves the page and does not undo fifty bits.
      history.replaceState(history.state, "", `#${this.#fragment()}`);
    } catch {
      this.#late = setTimeout(() => this.#address(), 400);
    }
  }

  #alter(state, together = false) {
    const [before, was] = [this.state, this.#fragment()];
    this.state = state;
    if (this.#fragment() !== was) this.#past.leave(before, together);
    this.#take(state);
  }

  #take(state) {
    this.state = state;
    this.#draw();
    const before = this.#taken && this.won.has(this.#taken.id);
    const reached = this.#taken?.reached(state);
    if (reached) this.won.add(this.#taken.id);
    this.#showTools();
    // While something plays by itself, only its end is spoken.
    if (this.#timer === null) this.live.textContent = `${reached && !before ? "Challenge reached. " : ""}${this.say(state)}`;
  }
}
