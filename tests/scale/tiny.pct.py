# %% [markdown] chapter="tiny"
# title: Tiny
# summary: A chapter for the tests of grading at scale.

# %% [markdown] exercise="double"
# title: Double
# minutes: 1
# difficulty: 1
# points: 4
# prerequisites: []
# teaches: multiplication
# leaves out: division
# off limits: []
# budget: {cpu_seconds: 1}

# %%
import torch

from grader import grade


# %% solution="double"
def double(x: torch.Tensor) -> torch.Tensor:
    """Return twice `x`."""
    ### BEGIN SOLUTION
    return x * 2
    ### END SOLUTION


# %% grade="double"
grade("double")

# %% [markdown] exercise="total"
# title: Total
# minutes: 1
# difficulty: 1
# points: 2
# prerequisites: [double]
# teaches: addition
# leaves out: the rest
# off limits: []


# %% solution="total"
def total(x: torch.Tensor) -> float:
    """Return the sum of `x`."""
    ### BEGIN SOLUTION
    return float(x.sum())
    ### END SOLUTION


# %% grade="total"
grade("total")
