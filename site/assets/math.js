// Typeset every formula of the page with the KaTeX that lies beside this file; without one, do without it.
{
  const formulas = document.querySelectorAll(".arithmatex");
  const typeset = () => {
    for (const element of formulas) {
      const text = element.textContent;
      const displayMode = text.startsWith("\\[");
      katex.render(text.slice(2, -2), element, { displayMode });
    }
  };
  if (formulas.length) {
    const script = document.createElement("script");
    script.src = new URL("katex/katex.min.js", document.currentScript.src);
    script.addEventListener("load", typeset);
    document.head.append(script);
  }
}
