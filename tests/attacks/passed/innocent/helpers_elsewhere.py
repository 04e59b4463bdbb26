# Helpers, constants, imports, decorators and a class in other cells, one of which comes after.
# %% cell before decode
from functools import wraps
from math import *

LEADING = 1
table = {}
table["inf"] = inf
print("an experiment", 1 / 3)
open("data-that-i-had.txt")
# %% cell before decode
def checked(function):
    """A decorator."""

    @wraps(function)
    def inner(*args):
        return Fields(*args).value(function)

    return inner


this is a syntax error
# %% cell before decode
def checked(function):
    """A decorator."""

    @wraps(function)
    def inner(*args):
        return Fields(*args).value(function)

    return inner


class Fields:
    def __init__(self, pattern, exponent_bits, mantissa_bits):
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.mantissa = pattern & ((1 << mantissa_bits) - 1)
        self.exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
        self.sign = copysign(1.0, -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0)
        self.top, self.width = (1 << exponent_bits) - 1, mantissa_bits

    def value(self, function):
        return later(self, function)
# %% solution decode
@checked
def decode(exponent, mantissa):
    return ldexp(mantissa, exponent)
# %% cell
def later(fields, function):
    if fields.exponent == fields.top:
        return nan if fields.mantissa else fields.sign * table["inf"]
    mantissa = fields.mantissa + (LEADING << fields.width if fields.exponent else 0)
    return fields.sign * function(max(fields.exponent, 1) - fields.bias - fields.width, mantissa)
