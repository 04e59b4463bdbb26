// What the theme leaves out for those who use a keyboard or a screen reader: a name for the search,
// and a stop of Tab for what scrolls sideways: wide tables, formulas, pictures, output. What goes on
// beyond its right edge is marked, so that the edge can fade.
const WIDE = ".md-typeset__scrollwrap, .ut-still > .output, .arithmatex, .ut-pic-drawing, .ut-out, .md-typeset pre > code";
const mark = (element) => {
  const beyond = element.scrollWidth - element.clientWidth;
  if (beyond > 0) element.tabIndex = 0;
  else element.removeAttribute("tabindex");
  element.toggleAttribute("data-more", beyond - element.scrollLeft > 2);
};
const wide = () => document.querySelectorAll(WIDE).forEach(mark);
addEventListener("load", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  // A button beside each block of code is no landmark.
  document.querySelectorAll(".md-code__nav").forEach((nav) => nav.setAttribute("role", "none"));
  wide();
  addEventListener("resize", wide);
  // Neither bubbles, and a fold that opens shows what had no width.
  document.addEventListener("toggle", wide, true);
  document.addEventListener("scroll", ({ target }) => target.matches?.(WIDE) && mark(target), true);
});
