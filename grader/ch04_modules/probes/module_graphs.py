"""Modules and tensors built from a description, and what a walk found of them, by number."""

import torch
from torch import nn

MOST = 5000
"""Most pairs taken from a walk: one that repeats itself for ever must end, too."""


TorchModule = nn.Module
"""A name of our own: the tripwire replaces the other while a student's code runs."""


def build(graph, kind=nn.Module):
    """Return the modules and the tensors that `graph` describes.

    Three lists of descriptions, which refer to each other by number or have None instead:
    "modules" of {"children", "parameters", "buffers"}, each a list of [name, number] (buffers have a
    third: persistent); "parameters" and "buffers" of shapes. Each tensor is filled with its number.
    """
    modules = [kind() for _ in graph["modules"]]
    parameters = [
        nn.Parameter(torch.full(shape, float(n))) for n, shape in enumerate(graph["parameters"])
    ]
    buffers = [torch.full(shape, 100.0 + n) for n, shape in enumerate(graph["buffers"])]
    for module, entry in zip(modules, graph["modules"], strict=True):
        for name, number in entry["children"]:
            module.add_module(name, None if number is None else modules[number])
        for name, number in entry["parameters"]:
            module.register_parameter(name, None if number is None else parameters[number])
        for name, number, persistent in entry["buffers"]:
            buffer = None if number is None else buffers[number]
            module.register_buffer(name, buffer, persistent=persistent)
    return modules, parameters, buffers


def numbered(walk, objects):
    """Return a walk's pairs, each object as its number in `objects`, or its type's name."""
    numbers = {id(item): number for number, item in enumerate(objects)}
    return [(name, numbers.get(id(item), type(item).__name__)) for name, item in walk]
