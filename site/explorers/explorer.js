// What all explorers share: building elements, rows of bits, choices, and a state that lives in the
// address and is spoken. README.md beside this file says how to make a new one.

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

/**
 * The element itself. A subclass gives
 *   read(params)   the state that an address or the element's attributes describe, or null
 *   write(state)   what the address should say, as [name, value] pairs
 *   build()        its elements, once
 *   show(state)    brings them up to date; called again when the width changes
 *   say(state)     one sentence for the live region
 *   static parts   for small views: the selectors of what each of them shows, by its name
 * and calls change({…}) when somebody acts.
 *
 * With small="name" it is a view in somebody's prose: it shows that part alone, in the state of the
 * attribute `state`, leaves the address to the page, and says in an event `turned` what it would hold.
 */
export class Explorer extends HTMLElement {
  connectedCallback() {
    if (this.live) return;
    const others = document.querySelectorAll(".ut-explorer").length;
    this.owner = others ? `-${others}` : "";
    this.small = this.getAttribute("small");
    this.live = h("p", { class: "ut-unseen", role: "status" });
    this.state = this.#first();
    this.classList.add("ut-explorer");
    put(this, this.#parts(this.#own(() => this.build())), this.live);
    this.#draw();
    if (this.small === null) addEventListener("hashchange", () => {
      const state = this.#addressed();
      if (state) this.#take(state);
    });
    let width = this.clientWidth;
    new ResizeObserver(() => {
      if (this.clientWidth !== width) this.#draw();
      width = this.clientWidth;
    }).observe(this);
  }

  change(part) {
    this.#take({ ...this.state, ...part });
    const params = new URLSearchParams(this.write(this.state));
    if (this.small !== null) this.dispatchEvent(new CustomEvent("turned", { detail: String(params) }));
    // Replaced, not pushed: Back leaves the page and does not undo fifty bits.
    else history.replaceState(history.state, "", "#" + params);
  }

  #first() {
    if (this.small !== null) {
      const state = this.read(new URLSearchParams(this.getAttribute("state")));
      if (!state) throw new Error(`no state of ${this.tagName}: ${this.getAttribute("state")}`);
      return state;
    }
    return this.#addressed() ?? this.read(new Map([...this.attributes].map((a) => [a.name, a.value])));
  }

  /** All that was built; of a small view, what it shows. */
  #parts(all) {
    if (this.small === null) return all;
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

  #take(state) {
    this.state = state;
    this.#draw();
    this.live.textContent = this.say(state);
  }
}
