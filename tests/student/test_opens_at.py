"""The extension that opens a notebook at a cell, where that is drawn late: by a clock that the test turns."""

import pytest

from grader.student.lab import _EXTENSIONS

SCRIPT = (_EXTENSIONS / "undertorch-at/static/at.js").read_text("utf-8")

APPLICATION = """() => {
  const [panel, cell] = [document.createElement("div"), document.createElement("div")];
  panel.style = "height: 400px; overflow: auto";
  panel.innerHTML = '<div style="height: 3000px"></div>';
  cell.style = "height: 2000px";
  document.body.append(panel);
  const shell = {
    currentWidget: {
      context: { path: "a.ipynb", ready: Promise.resolve() },
      content: { node: panel, widgets: [{ model: { id: "mine-card" }, node: cell }] },
      setFragment: () => cell.isConnected && cell.scrollIntoView(),
    },
    currentChanged: { connect: () => {}, disconnect: () => {} },
  };
  const top = () => Math.round(cell.getBoundingClientRect().top - panel.getBoundingClientRect().top);
  window.at = { draw: () => panel.append(cell), push: () => (panel.firstChild.style.height = "3500px"), top };
  _JUPYTERLAB["undertorch-at"].get()().activate({ shell });
}"""


@pytest.mark.parametrize("seconds", [0, 30])
def test_it_waits_for_a_cell_that_is_drawn_late_and_holds_it(browser, seconds):
    with browser.new_page() as page:
        page.route(
            "**/*", lambda route: route.fulfill(body="<body></body>", content_type="text/html")
        )
        page.clock.install()
        page.goto("http://jupyter/lab/tree/a.ipynb#cell-id=mine-card")
        page.evaluate(SCRIPT)
        page.evaluate(APPLICATION)
        page.clock.run_for(1000 * seconds)
        page.evaluate("at.draw()")
        page.clock.run_for(1000)
        assert page.evaluate("at.top()") == 0
        page.evaluate("at.push()")  # one above it got its height
        page.clock.run_for(1000)
        assert page.evaluate("at.top()") == 0
        page.clock.run_for(20_000)
        page.evaluate("document.querySelector('div').scrollTop = 0")  # it has let go
        page.clock.run_for(1000)
        assert page.evaluate("at.top()") == 3500
