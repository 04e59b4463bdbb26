# %% blocked: builtin
# It is the answer.
grad_off = torch.no_grad


# %% mistake: switches_on
# Afterwards you switch grad mode on, whatever it was. Remember what `torch.is_grad_enabled()` said
# before, and put that back.
@contextmanager
def grad_off():
    torch.set_grad_enabled(False)
    try:
        yield
    finally:
        torch.set_grad_enabled(True)


# %% mistake: not_after_an_error
# When the body raises, your code after the `yield` is not reached. `try … finally` reaches it.
@contextmanager
def grad_off():
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    yield
    torch.set_grad_enabled(before)


# %% alternate: a_class
# The two methods that `with` calls.
class grad_off:
    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, *error):
        torch.set_grad_enabled(self.before)
