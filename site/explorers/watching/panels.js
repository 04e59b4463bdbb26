// Beside the drawing: what is selected, the table of names, and the lines of the program.

import { choice, h, put } from "../explorer.js";
import { linksOf, longest, outermost, sorted } from "./profile.js";
import { bytesText, linesOf, percent, plural, timeText, whenText } from "./words.js";

const MOST_NAMES = 80;
const MOST_LINKS = 6;

/** What is selected. go(i) selects another call. */
export function details(go) {
  const body = h("div", {});
  const element = h("section", { class: "ut-panel wt-call", "aria-label": "What is selected" }, body);
  const to = (profile, i) => h("button", { type: "button", class: "ut-button", onclick: () => go(i) }, profile.calls[i].name);
  const row = (name, ...shown) => h("div", {}, h("dt", {}, name), h("dd", {}, shown));

  function show(profile, at) {
    const call = profile.calls[at];
    if (!call) {
      put(body, h("h2", {}, "Nothing is selected"), h("p", { class: "ut-soft" }, "Select a bar above, a line of the program or a row of the table."));
      return;
    }
    const { name, start, end, own, parent, shapes, bytes, thread, kind } = call;
    const all = profile.rows.find((one) => one.name === name);
    const links = linksOf(profile, at);
    const linked = (pairs, label, side) => (pairs.length ? row(label, pairs.slice(0, MOST_LINKS).map((pair) => [to(profile, pair[side]), " "]), pairs.length > MOST_LINKS ? `and ${pairs.length - MOST_LINKS} more` : null) : null);
    const frame = profile.python?.findLast((one) => one.thread === thread && one.start <= start && one.end >= end && /^(?!.*\btorch[\\/]).*\(\d+\): /.test(one.name));
    put(body, h("h2", {}, name), h("dl", { class: "ut-facts" },
      row("total time", h("b", {}, timeText(end - start)), `, ${whenText(start)}, on ${profile.lanes[thread].name}`),
      row("own time", h("b", {}, timeText(own)), own === end - start ? ", all of it" : ` without the calls inside it`, kind === "wait" ? ": it waits" : null),
      all.calls.length > 1 ? row("calls", `${all.calls.indexOf(at) + 1} of ${all.calls.length}, together ${timeText(all.total)}, own ${timeText(all.own)}`) : null,
      shapes ? row("shapes", shapes) : null,
      bytes ? row("memory", `${bytes > 0 ? "takes" : "gives back"} ${bytesText(Math.abs(bytes))} itself`) : null,
      parent >= 0 ? row("inside of", to(profile, parent)) : null,
      frame ? row("Python", frame.name) : null,
      linked(links.filter(([, , mine]) => mine), "its forward", 1),
      linked(links.filter(([, , mine]) => !mine), "its backward", 0)));
  }
  return { element, show };
}

/** The names, by own or by total time. */
export function table(sort, go) {
  const by = choice({ label: "Sort by", name: "wt-sort", options: [["own", "own time"], ["total", "total time"], ["bytes", "memory"]], look: "ut-tabs wt-sorts", pick: sort });
  const rows = h("tbody", {});
  const scroll = h("div", { class: "wt-scroll" }, h("table", { class: "wt-table" }, h("thead", {}, h("tr", {}, ["name", "calls", "own", "total"].map((text) => h("th", { scope: "col" }, text)))), rows));
  const more = h("p", { class: "ut-soft" });
  const element = h("section", { class: "ut-panel wt-names", "aria-label": "Names" }, by.element, scroll, more);
  let drawn = null, shown = [];

  function show(profile, at, key) {
    by.show(key);
    by.element.lastElementChild.hidden = !profile.memory.length;
    if (drawn?.profile !== profile || drawn.key !== key) {
      drawn = { profile, key };
      scroll.scrollTop = 0;
      const all = sorted(profile, key).filter((row) => key !== "bytes" || row.bytes);
      const first = Math.max(all[0]?.[key] ?? 0, 1);
      shown = all.slice(0, MOST_NAMES);
      put(rows, shown.map((row) => h("tr", {}, h("th", { scope: "row" },
        h("button", { type: "button", onclick: () => go(longest(profile, row)) }, row.name), h("i", { style: `width:${Math.max(0, row[key]) / first * 100}%` })),
        h("td", {}, `${row.calls.length}`), h("td", {}, key === "bytes" ? bytesText(row.bytes) : timeText(row.own)), h("td", {}, key === "bytes" ? "" : timeText(row.total)))));
      put(element.querySelector("thead tr"), ["name", "calls", key === "bytes" ? "itself" : "own", key === "bytes" ? "" : "total"].map((text) => (text ? h("th", { scope: "col" }, text) : h("td", {}))));
      const sum = (of) => profile.rows.reduce((n, row) => n + row[of], 0);
      put(more, key === "bytes" ? `Taken less given back: ${bytesText(sum("bytes"))}.` : `${plural(all.length, "name")}. Own times sum to ${timeText(sum("own"))}, totals to ${timeText(sum("total"))}.`,
        all.length > MOST_NAMES ? ` The first ${MOST_NAMES} are shown.` : null);
    }
    const name = profile.calls[at]?.name;
    shown.forEach((row, i) => {
      const line = rows.children[i];
      if (row.name !== name) return line.removeAttribute("aria-current");
      line.setAttribute("aria-current", "true");
      // The box scrolls, never the page.
      if (line.offsetTop < scroll.scrollTop || line.offsetTop + line.offsetHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = line.offsetTop - scroll.clientHeight / 2;
      return undefined;
    });
  }
  return { element, show };
}

/** The program that was recorded, with the share of its time that each line took. */
export function lines(go) {
  const list = h("ol", { class: "wt-code" });
  const element = h("section", { class: "ut-panel wt-lines", "aria-label": "Program" }, list);
  let drawn = null, told = [];

  function show(profile, at) {
    element.hidden = !profile.source;
    if (!profile.source) return;
    if (drawn !== profile) {
      drawn = profile;
      told = linesOf(profile);
      put(list, told.map(({ text, row }) => {
        const code = h("code", {}, text);
        return h("li", {}, row ? h("button", { type: "button", onclick: () => go(longest(profile, row)) }, code) : code, row ? h("b", {}, percent(row.total / profile.end)) : null);
      }));
    }
    const line = at >= 0 ? profile.calls[outermost(profile, at)].name : null;
    told.forEach(({ row }, i) => list.children[i].classList.toggle("here", Boolean(row) && row.name === line));
  }
  return { element, show };
}
