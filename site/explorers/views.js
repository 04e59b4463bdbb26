// Small views in the prose: an explorer's code is asked for when a view of it comes into sight, never
// before. Not a module: modules cannot be loaded from disk. site/explorers/views.py puts it into pages.
(() => {
  const folder = new URL("./", document.currentScript.src);
  const loading = new Map();

  /** An element that loads something, as a promise. */
  const added = (tag, props) => new Promise((resolve, reject) => {
    document.head.append(Object.assign(document.createElement(tag), props, { onload: resolve, onerror: reject }));
  });

  const once = (key, load) => loading.get(key) ?? loading.set(key, load()).get(key);
  const sheet = (path) => once(path, () => added("link", { rel: "stylesheet", href: new URL(path, folder).href }));
  const script = (path) => once(path, () => added("script", { src: new URL(path, folder).href }));

  async function show(stage) {
    const { explorer, part } = stage.dataset;
    await Promise.all([sheet("explorer.css"), sheet(`${explorer}/${explorer}.css`)]);
    await script(`${explorer}/bundle.js`);
    const link = stage.parentElement.querySelector(".ut-view-open");
    const [large, first] = [link.href.split("#")[0], stage.dataset.state];
    const again = document.createElement("button");
    again.type = "button";
    again.className = "ut-view-again";
    again.textContent = "Start again";
    const open = () => {
      const element = document.createElement(`${explorer}-explorer`);
      element.setAttribute("small", part);
      element.setAttribute("state", first);
      element.addEventListener("turned", ({ detail }) => {
        link.href = `${large}#${detail}`;
        again.hidden = false;
      });
      stage.replaceChildren(element);
      link.href = `${large}#${first}`;
      again.hidden = true;
    };
    again.addEventListener("click", () => {
      open();
      stage.querySelector("button:not([tabindex='-1']), input, textarea, [tabindex='0']")?.focus();
    });
    link.after(again);
    open();
  }

  const stages = document.querySelectorAll(".ut-stage");
  const watch = (margin) => {
    const observer = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
      if (!isIntersecting || target.dataset.shown) return;
      target.dataset.shown = "true";
      show(target);
    }), { rootMargin: margin });
    stages.forEach((stage) => observer.observe(stage));
  };
  watch("0px");
  // Who scrolls will be there soon.
  addEventListener("scroll", () => watch("400px"), { once: true, passive: true });
})();
