// Typeset every formula of the page with the KaTeX that lies beside this file.
document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const text = element.textContent;
    const displayMode = text.startsWith("\\[");
    katex.render(text.slice(2, -2), element, { displayMode });
  }
});
