"""Families of ATen operators, for exercises that allow a few and forbid all others.

An operator's family is read off what torch says of it: tags and schema. Names are listed where that
does not tell.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

_NAMES: dict[str, frozenset[str]] = {
    "elementwise": frozenset(
        [
            "masked_fill",
            "masked_fill_",
            "lerp",
            "lerp_",
            "bernoulli_",
            "is_same_size",
            "_foreach_add_",
        ]
    ),
    "indexing": frozenset(
        [
            "index",
            "index_put",
            "index_put_",
            "_unsafe_index",
            "gather",
            "scatter",
            "scatter_",
            "index_select",
            "index_add",
            "index_add_",
            "index_copy",
            "index_copy_",
            "take",
            "nonzero",
            "masked_select",
            "masked_scatter",
            "flip",
            "roll",
            "_index_put_impl_",
        ]
    ),
    "views": frozenset(
        [
            "view",
            "reshape",
            "_unsafe_view",
            "_reshape_alias",
            "_reshape_copy",
            "contiguous",
            "lift_fresh",
            "lift",
            "alias",
            "detach",
            "expand_as",
            "view_as",
            "unsqueeze_",
            "squeeze_",
            "transpose_",
            "t_",
            "as_strided_",
            "resolve_conj",
            "resolve_neg",
        ]
    ),
    "creation": frozenset(
        [
            "empty",
            "empty_strided",
            "empty_permuted",
            "zeros",
            "ones",
            "full",
            "arange",
            "eye",
            "linspace",
            "scalar_tensor",
            "tril_indices",
            "triu_indices",
            "rand",
            "randn",
            "randint",
            "randperm",
        ]
    ),
    "copies": frozenset(
        [
            "clone",
            "copy_",
            "copy",
            "_to_copy",
            "cat",
            "stack",
            "repeat",
            "repeat_interleave",
            "constant_pad_nd",
            "fill_",
            "fill",
            "zero_",
            "zero",
            "new_copy",
            "pad",
            "tril",
            "triu",
            "tril_",
            "triu_",
        ]
    ),
    "sum": frozenset(["sum", "cumsum", "nansum", "_foreach_sum"]),
    "reductions": frozenset(
        [
            "sum",
            "mean",
            "prod",
            "amax",
            "amin",
            "max",
            "min",
            "all",
            "any",
            "argmax",
            "argmin",
            "cumsum",
            "cumprod",
            "nansum",
            "count_nonzero",
            "var",
            "std",
            "var_mean",
            "std_mean",
            "logsumexp",
            "norm",
        ]
    ),
    "sorting": frozenset(
        [
            "sort",
            "argsort",
            "topk",
            "unique2",
            "_unique2",
            "unique_consecutive",
            "searchsorted",
            "bucketize",
        ]
    ),
    "reading": frozenset(["_local_scalar_dense", "item", "equal", "is_nonzero", "allclose"]),
    "matrix products": frozenset(
        [
            "mm",
            "bmm",
            "addmm",
            "baddbmm",
            "mv",
            "addmv",
            "dot",
            "vdot",
            "linear",
            "matmul",
            "_int_mm",
            "_scaled_mm",
            "addbmm",
        ]
    ),
}

FAMILIES = frozenset(_NAMES)
"""The families' names, as a card writes them."""


@cache
def is_of(operator: Any, families: frozenset[str]) -> bool:
    """Is an operator's overload of one of these families?"""
    return any(_is_of(operator, family) for family in families)


def _is_of(operator: Any, family: str) -> bool:
    name: str = operator._schema.name.removeprefix("aten::")
    if operator.namespace == "aten" and name in _NAMES[family]:
        return True
    if family == "elementwise":
        return torch.Tag.pointwise in operator.tags
    if family == "views":
        return bool(operator.is_view)
    if family == "creation":
        return name.endswith("_like") or name.startswith("new_")
    return False
