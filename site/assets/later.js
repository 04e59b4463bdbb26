// The search index is most of what a page would load, and most readers never search: it waits until
// the search has the focus, and the script that searches waits for the index. Runs before the theme's
// script, which asks for both at once.
{
  const { open, send } = XMLHttpRequest.prototype;
  const asked = new Promise((go) => {
    if (/[?&][hq]=/.test(location.search)) go(); // a search that came with the address
    addEventListener("focusin", ({ target }) => target.matches(".md-search__input") && go());
  });
  XMLHttpRequest.prototype.open = function (method, url, ...more) {
    this.waits = new URL(url, location).pathname.endsWith("/search/search_index.json");
    return open.call(this, method, url, ...more);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (this.waits) asked.then(() => send.apply(this, body));
    else send.apply(this, body);
  };
  const Eager = Worker;
  window.Worker = class extends EventTarget {
    constructor(...given) {
      super();
      this.given = given;
    }
    postMessage(...said) {
      if (!this.worker) {
        this.worker = new Eager(...this.given);
        this.worker.addEventListener("message", ({ data }) => this.dispatchEvent(new MessageEvent("message", { data })));
      }
      this.worker.postMessage(...said);
    }
  };
}
