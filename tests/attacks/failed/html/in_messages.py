# Script in exception names, messages, source lines, printed text and comments; bytes that terminals obey.
# says: &lt;script&gt;alert
# %% solution decode
# <script>alert(1)</script>
Evil = type("<script>alert(2)</script>`<img src=x onerror=alert(3)>`", (Exception,), {})


def decode(pattern, exponent_bits, mantissa_bits):
    print("<script>alert(4)</script>")
    raise Evil("<script>alert(5)</script>\x1b[2J\x1b]0;owned\x07 `<img src=x onerror=alert(6)>` {{7*7}} \ud800")
# %% cell
from IPython.display import HTML, display

display(HTML("<script>alert(8)</script>"))
# %% notebook
test = cell_of(nb, "decode-grade")
test["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": "<script>alert(9)</script>"}}]
nb["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "<script>alert(10)</script>", "id": "md"})
nb["metadata"]["title"] = "</title><script>alert(11)</script>"
