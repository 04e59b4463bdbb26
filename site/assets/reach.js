// What the theme leaves out for those who use a keyboard or a screen reader: a name for the search,
// and a stop of Tab for what scrolls sideways: wide tables, formulas, pictures.
const wide = () => {
  for (const element of document.querySelectorAll(".md-typeset__scrollwrap, .arithmatex, .ut-pic-drawing")) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  }
};
addEventListener("load", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  wide();
  addEventListener("resize", wide);
});
