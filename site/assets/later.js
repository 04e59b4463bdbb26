// The search index is most of what a page would load, and most readers never search: it waits until
// the search has the focus. Runs before the theme's script, which asks for the index at once.
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
}
