# Cells hold magics, shell lines, display and top-level await; the solution too.
# %% cell before round_to_bf16
%matplotlib inline
!ls -la
import asyncio
from IPython.display import display
files = !ls
%timeit -n 1 -r 1 sum(range(3))
await asyncio.sleep(0)
ODD = 0x7FFF
display(ODD)
ODD?
# %% cell before round_to_bf16
%%time
def add_half(bits):
    return bits + ODD + ((bits >> 16) & 1)
# %% cell before round_to_bf16
%%bash
rm -rf /
# %% solution round_to_bf16
%config InlineBackend.figure_format = "retina"
import asyncio


def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = add_half(bits) >> 16
    quiet = (bits >> 16) | 0x0040
    return torch.where(x.isnan(), quiet, rounded).to(torch.int16).view(torch.bfloat16)


await asyncio.sleep(0)
%timeit -n 1 -r 1 round_to_bf16(torch.zeros(3))
display(round_to_bf16(torch.ones(1)))
!echo done
# %% cell
%timeit round_to_bf16(torch.rand(10))
