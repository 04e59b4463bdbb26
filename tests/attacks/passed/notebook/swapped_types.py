# Solution cells that say they are text, with attachments, and keys that stand twice in the file: the last ones count.
# %% notebook
for name, kind in (("decode", "markdown"), ("round_to_bf16", "raw")):
    cell = cell_of(nb, name)
    cell["cell_type"] = kind
    cell["attachments"] = {"x.html": {"text/html": "<script>alert(13)</script>"}}
# %% folder
text = json.dumps(nb)
notebook.write_text('{"cells": [], "nbformat": 99, ' + text[1:-1] + ', "nbformat_minor": 1e999999}')
