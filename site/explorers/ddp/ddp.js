// <ddp-explorer>: three drawings of data parallel training. The address holds panel=overlap|ring|zero
// and, of each panel that was touched, what its own module reads and writes.

import { Explorer, choice, h } from "../explorer.js";
import { CHALLENGES } from "./challenges.js";
import { lastStep, readRing, ringPanel, writeRing } from "./circle.js";
import { readZero, writeZero, zeroPanel } from "./memory.js";
import { overlapPanel, readOverlap, writeOverlap } from "./overlap.js";

const PANELS = {
  overlap: { name: "overlap", title: "Backward and all-reduce at once", make: overlapPanel, read: readOverlap, write: writeOverlap },
  ring: { name: "ring", title: "An all-reduce, step by step", make: ringPanel, read: readRing, write: writeRing },
  zero: { name: "ZeRO", title: "Memory per rank", make: zeroPanel, read: readZero, write: writeZero },
};
const IDS = Object.keys(PANELS);

class DdpExplorer extends Explorer {
  static parts = {
    buckets: ["[aria-label='Which buckets']", "[aria-label='One backward']"],
    network: [".dd-knobs", "[aria-label='One backward']"],
    ring: ["[aria-label='The ring']"],
    zero: ["[aria-label='Model, ranks and optimizer']", "[aria-label='Bytes per rank']"],
    sent: ["[aria-label='Bytes per rank']", "[aria-label='The chosen stage']"],
  };

  get challenges() { return CHALLENGES; }

  get pace() { return 1200; }

  /** Around the ring; the other panels have no steps. */
  advance({ panel, ring }) {
    return panel === "ring" && ring.step < lastStep(ring.n) ? { ring: { ...ring, step: ring.step + 1 } } : null;
  }

  rewind({ panel, ring }) {
    return panel === "ring" ? { ring: { ...ring, step: 0 } } : null;
  }

  read(params) {
    const panel = params.get("panel") ?? null;
    const parts = IDS.map((id) => [id, PANELS[id].read(params)]);
    return IDS.includes(panel) && parts.every(([, part]) => part) ? { panel, ...Object.fromEntries(parts) } : null;
  }

  /** The panel on show is written out; of the others only what is not as at first. */
  write(state) {
    const first = (id) => String(PANELS[id].write(PANELS[id].read(new Map())));
    const others = IDS.filter((id) => id !== state.panel && String(PANELS[id].write(state[id])) !== first(id));
    return [["panel", state.panel], ...[state.panel, ...others].flatMap((id) => PANELS[id].write(state[id]))];
  }

  build() {
    this.tabs = choice({ label: "What to look at", name: "panel", options: IDS.map((id) => [id, PANELS[id].name, h("small", {}, PANELS[id].title)]), pick: (panel) => this.change({ panel }), look: "ut-tabs dd-panels" });
    this.panels = IDS.map((id) => PANELS[id].make((part) => {
      const own = this.state[id];
      this.change({ [id]: { ...own, ...(typeof part === "function" ? part(own) : part) } });
    }));
    return [this.tabs.element, this.panels.map(({ element }) => element)];
  }

  show(state) {
    this.tabs.show(state.panel);
    IDS.forEach((id, i) => {
      this.panels[i].element.hidden = id !== state.panel;
      if (id === state.panel) this.panels[i].show(state[id]);
    });
  }

  say(state) {
    return this.panels[IDS.indexOf(state.panel)].say(state[state.panel]);
  }
}

customElements.define("ddp-explorer", DdpExplorer);
