// <dispatch-explorer>: a call on its road through the dispatcher, and the loops of the kernel at its end.
// The address holds call=add, x=plain, around=no_grad.vmap and step=3; or panel=loops, size=3x4, a=4,1 and b=1,3.

import { Explorer, choice } from "../explorer.js";
import { callPanel } from "./call.js";
import { CHALLENGES } from "./challenges.js";
import { loopsPanel } from "./nest.js";
import { CALLS, MODES, TENSORS, allowed, route } from "./road.js";

const numbers = (text, least, most, by) => {
  if (text === "") return [];
  const found = text.split(by).map((one) => (/^\d{1,4}$/.test(one.trim()) ? Number(one) : NaN));
  return found.length <= 5 && found.every((n) => n >= least && n <= most) ? found : null;
};

class DispatchExplorer extends Explorer {
  static parts = {
    road: [".dp-call", ".dp-road"],
    keys: [".dp-call", ".dp-lanes"],
    lanes: [".dp-lanes"],
    whole: [".dp-two"],
    loops: [".dp-operands", ".dp-nest"],
  };

  get challenges() { return CHALLENGES; }

  get pace() { return 1200; }

  advance(state) {
    return state.panel === "road" && state.step < this.roadOf(state).stops.length - 1 ? { step: state.step + 1 } : null;
  }

  rewind(state) { return state.panel === "road" && this.roadOf(state).stops.length > 1 ? { step: 0 } : null; }

  /** The road is walked once for each call, not for each step of it. */
  roadOf(state) {
    const key = `${state.call} ${state.tensor} ${state.modes}`;
    if (this.walked?.key !== key) this.walked = { key, road: route(state) };
    return this.walked.road;
  }

  read(params) {
    const get = (name, usual) => params.get(name) ?? usual;
    const panel = get("panel", "road");
    const [call, tensor] = [get("call", "add"), get("x", "plain")];
    const size = numbers(get("size", "3x4"), 1, 64, "x");
    const [a, b] = [numbers(get("a", "4,1"), 0, 9999, ","), numbers(get("b", "1,3"), 0, 9999, ",")];
    if (!["road", "loops"].includes(panel) || !Object.hasOwn(CALLS, call) || !TENSORS.includes(tensor) || !size || a?.length !== size.length || b?.length !== size.length) return null;
    const around = get("around", "").split(".");
    const state = { panel, call, tensor, modes: allowed(tensor).filter((mode) => around.includes(mode)), size, a, b };
    const step = /^\d{1,3}$/.test(get("step", "")) ? Number(params.get("step")) : 0;
    return { ...state, step: Math.max(0, Math.min(step, route(state).stops.length - 1)) };
  }

  write({ panel, call, tensor, modes, step, size, a, b }) {
    if (panel === "loops") return [["panel", panel], ["size", size.join("x")], ["a", `${a}`], ["b", `${b}`]];
    return [["call", call], ["x", tensor], ...(modes.length ? [["around", modes.join(".")]] : []), ...(step ? [["step", step]] : [])];
  }

  build() {
    this.tabs = choice({ label: "What to look at", name: "dp-panel", options: [["road", "The road of a call"], ["loops", "The loops of a kernel"]], pick: (panel) => this.change({ panel }), look: "ut-tabs dp-tabs" });
    this.call = callPanel({
      call: (call) => this.change({ call, step: 0 }),
      tensor: (tensor) => this.change({ tensor, modes: this.state.modes.filter((mode) => allowed(tensor).includes(mode)), step: 0 }),
      mode: (mode) => this.change({ modes: MODES.filter((one) => this.state.modes.includes(one) !== (one === mode)), step: 0 }),
      step: (step) => this.change({ step }),
    });
    this.nest = loopsPanel({ read: (given) => this.read(new Map(Object.entries({ panel: "loops", ...given }))), give: (given) => this.change(given) });
    return [this.tabs.element, this.call.element, this.nest.elements];
  }

  show(state) {
    this.tabs.show(state.panel);
    this.call.element.hidden = state.panel !== "road";
    for (const element of this.nest.elements) element.hidden = state.panel !== "loops";
    if (state.panel === "road") this.call.show(state, this.roadOf(state));
    else this.nest.show(state);
  }

  say(state) {
    return state.panel === "road" ? this.call.say(state, this.roadOf(state)) : this.nest.say(state);
  }
}

customElements.define("dispatch-explorer", DispatchExplorer);
