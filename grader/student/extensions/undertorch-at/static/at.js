// Opens a notebook at the cell that the address names: …/ch02_strides/strides.ipynb#cell-id=view_stride-card.
// JupyterLab and Notebook 7 follow such a link inside of a page; when they start, they drop what it says.
{
  const [path, fragment] = [decodeURIComponent(location.pathname), location.hash]; // before they do
  const TOUCHES = ["wheel", "keydown", "pointerdown"];

  const LOOKS = 40; // in a row: some ten seconds, more where all is slow
  const MOST = 300_000; // milliseconds: a cell that is not there, or a last one, never comes to the top

  // Cells above get their height as they are drawn, and push what was found away: look again until
  // it stays, or the reader takes over.
  const hold = (panel, until = Date.now() + MOST) => {
    let stayed = 0, last;
    const timer = setInterval(() => {
      const cell = panel.content.widgets.find(({ model }) => `#cell-id=${model.id}` === fragment);
      const top = ({ node }) => node.getBoundingClientRect().top;
      const off = cell?.node.isConnected ? top(cell) - top(panel.content) : undefined; // not drawn yet
      const isThere = off >= -8 && off < 80;
      stayed = isThere ? stayed + 1 : 0;
      if (!isThere && off === last) panel.setFragment(fragment); // what still moves may be on its way there
      last = off;
      if (stayed === LOOKS || Date.now() > until) stop();
    }, 250);
    const stop = () => {
      clearInterval(timer);
      for (const touch of TOUCHES) removeEventListener(touch, stop, true);
    };
    for (const touch of TOUCHES) addEventListener(touch, stop, true);
  };

  const plugin = {
    id: "undertorch-at:plugin",
    autoStart: true,
    activate: ({ shell }) => {
      if (!fragment.startsWith("#cell-id=")) return;
      const look = () => {
        const panel = shell.currentWidget;
        if (!panel?.context || !path.endsWith(`/${panel.context.path}`)) return;
        shell.currentChanged.disconnect(look);
        panel.context.ready.then(() => hold(panel));
      };
      shell.currentChanged.connect(look);
      look();
    },
  };
  (window._JUPYTERLAB ??= {})["undertorch-at"] = { init: () => {}, get: () => () => plugin };
}
