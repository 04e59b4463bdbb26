// The search index is most of what a page would load, and most readers never search: it waits until
// the search has the focus, and the script that searches waits for the index. Runs before the theme's
// script, which asks for both at once.
// A question is searched for by what it asks about: its small words are not in the index, and as
// beginnings of words ("a", "is") they would find half the site.
{
  const SMALL = new Set(
    ("a about an and are as at be been but by can could did do does for from had has have how i if in into is " +
      "it its me must my of on or our should so than that the their then there these they this to was we were " +
      "what when where which who why will with would you your").split(" "),
  );
  const asked_about = (query) => {
    const words = query.split(/\s+/).map((word) => word.replace(/[?!.,;:]+$/, "")).filter(Boolean);
    const large = words.filter((word) => !SMALL.has(word.toLowerCase()));
    const begun = large.map((word) => word.replace(/^([a-z]{4,})ing$/i, "$1*")); // growing: grows, too
    return query.includes('"') || !large.length ? query : begun.join(" ");
  };
  const QUERY = 2; // the theme's number for it, beside what is searched for
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
      const [message, ...more] = said;
      if (message.type === QUERY) message.data = asked_about(message.data);
      this.worker.postMessage(message, ...more);
    }
  };
}
