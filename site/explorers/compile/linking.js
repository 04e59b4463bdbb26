// Pointing at what belongs to a line: with a mouse, with a finger, by keyboard.

const MOVES = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

const linesAt = (target) => (target?.closest?.("[data-lines]")?.dataset.lines ?? "").split(" ").filter(Boolean).map(Number);

/**
 * In `part`, elements have data-lines: the lines that they belong to. light(lines) is called for what is pointed at,
 * hold(line) for what is chosen; that, and the focus, only options have. A list of them is one stop of Tab.
 */
export function linked(part, { light, hold }) {
  const options = () => [...part.querySelectorAll("[role=option]")];
  const rove = (to) => options().forEach((one) => one.setAttribute("tabindex", one === to ? 0 : -1));
  const choose = (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    event.preventDefault();
    hold(Number(option.dataset.lines));
  };
  const listen = (name, act) => part.addEventListener(name, act);
  listen("pointerover", (event) => light(linesAt(event.target)));
  listen("pointerleave", () => light(part.contains(document.activeElement) ? linesAt(document.activeElement) : []));
  listen("focusin", ({ target }) => {
    if (target.matches("[role=option]")) rove(target);
    light(linesAt(target));
  });
  listen("focusout", () => light([]));
  listen("click", choose);
  listen("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") choose(event);
    const all = options();
    const at = all.indexOf(event.target);
    if (at < 0 || !(event.key in MOVES)) return;
    event.preventDefault();
    all[Math.min(Math.max(at + MOVES[event.key], 0), all.length - 1)].focus();
  });
}
