# Exceptions whose class, text and name are objects with minds of their own.
# %% solution decode
class Name(str):
    __str__ = __repr__ = lambda self: 1 / 0


class Meta(type):
    @property
    def __name__(cls):
        return "x" * 10**7


class Rude(Exception, metaclass=Meta):
    def __str__(self):
        return Name("rude")


def decode(pattern, exponent_bits, mantissa_bits):
    raise Rude("y" * 10**7)
