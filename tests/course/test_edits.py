"""Edits of a program: each hunk fits one place of the code, or says why it does not."""

import pytest

from grader.course.edits import EditError, code_lines, edited

BASE = '''\
class Sum:
    """Adds up."""

    def __init__(self):
        # nothing yet
        self.total = 0  # of all
        self.count = 0

    def add(self, x):
        """Take one more."""
        if x is None:
            return None

        self.total += x
        self.count += 1
        return None

    def mean(self):
        return self.total / self.count
'''


def apply(edit, base=BASE):
    return edited(code_lines(base), edit, "the reference")


def refused(edit, base=BASE):
    with pytest.raises(EditError) as refusal:
        apply(edit, base)
    return str(refusal.value)


def test_what_comes_out_is_the_code_alone():
    program = apply("- self.count += 1\n+ self.count += 2\n")
    assert program == (
        "class Sum:\n"
        "    def __init__(self):\n"
        "        self.total = 0\n"
        "        self.count = 0\n\n"
        "    def add(self, x):\n"
        "        if x is None:\n"
        "            return None\n\n"
        "        self.total += x\n"
        "        self.count += 2\n"
        "        return None\n\n"
        "    def mean(self):\n"
        "        return self.total / self.count\n"
    )


def test_margin_means_nothing_and_indentation_does():
    edit = "  def mean(self):\n-     return self.total / self.count\n"
    come = "+     if self.count:\n+         return 1\n"
    deep = "".join(f"{line[0]}      {line[1:]}" for line in (edit + come).splitlines(keepends=True))
    assert apply(edit + come) == apply(deep)
    assert "    def mean(self):\n        if self.count:\n            return 1\n" in apply(deep)


def test_a_line_may_move_left_of_its_neighbours():
    program = apply(
        "-     self.count += 1\n+     self.count += 1\n+ # a method\n+ def two(self):\n+     pass\n"
    )
    assert "        self.count += 1\n    # a method\n    def two(self):\n        pass\n" in program


@pytest.mark.parametrize("copied", ["self.total = 0  # of all", "self.total = 0"])
def test_a_comment_behind_code_may_be_copied_or_not(copied):
    assert "self.total = 1\n" in apply(f"- {copied}\n+ self.total = 1\n")


def test_comments_docstrings_and_blank_lines_stand_between_no_lines():
    program = apply("  def __init__(self):\n+     super().__init__()\n      self.total = 0\n")
    assert "super().__init__()\n        self.total = 0\n" in program
    program = apply(
        "  def add(self, x):\n      # any remark\n-     if x is None:\n-         return None\n"
    )
    assert "    def add(self, x):\n        self.total += x\n" in program
    assert "    def add(self, x):\n        total" in apply(
        "  def add(self, x):\n-     if x is None:\n-         return None\n-     self.total += x\n"
        "+     total = x\n"
    )


def test_a_docstring_that_is_all_of_a_body_stays():
    base = 'class Stop(Exception):\n    """Ends it."""\n\n\ndef f():\n    raise Stop\n'
    assert '    """Ends it."""\n\ndef f():\n    pass\n' in apply("- raise Stop\n+ pass\n", base)


def test_text_within_strings_is_left_alone():
    base = 'def f():\n    return """\n# no comment  \n\n"""\n\n\nx = f()\n'
    assert (
        apply("- x = f()\n+ x = 1\n", base)
        == 'def f():\n    return """\n# no comment  \n\n"""\n\nx = 1\n'
    )


def test_hunks_are_looked_up_in_the_base_in_any_order():
    both = "- self.count += 1\n+ self.count = 0\n\n- self.count = 0\n+ self.count += 1\n"
    program = apply(both)
    assert "self.total = 0\n        self.count += 1\n" in program
    assert "self.total += x\n        self.count = 0\n" in program


def test_a_line_that_stands_nowhere_names_the_nearest():
    assert refused("- self.totals += x\n+ pass\n") == (
        '"self.totals += x" stands nowhere in the reference (nearest, line 14: "self.total += x"): '
        "copy the line as it stands there"
    )


def test_a_line_that_stands_twice_names_both_places():
    assert refused("- return None\n") == (
        '"return None" stands at lines 12 and 16 of the reference: add a line around it'
    )


def test_lines_that_do_not_follow_each_other():
    assert refused("  def mean(self):\n-     self.count += 1\n") == (
        '"self.count += 1" stands at line 15 of the reference, and not so below "def mean(self):": '
        "copy the lines as they stand there, indented as there"
    )
    assert "not so below" in refused("- self.total += x\n-     self.count += 1\n")


def test_hunks_that_share_a_line():
    edit = "- self.total += x\n  self.count += 1\n\n- self.count += 1\n"
    assert refused(edit) == (
        'two of its hunks hold line 15 of the reference ("self.count += 1"): make one hunk of them'
    )


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("+ self.more = 1\n", "has no line of the reference beside it: add one"),
        ("  self.count += 1\n", "stays and nothing beside it changes: remove it"),
        ("@@ -1 +1 @@\n", "begins with neither `-` nor `+` nor a space"),
        ("-     self.count += 1\n+ y\n", '"y" would stand left'),
    ],
)
def test_hunks_that_say_too_little(edit, said):
    base = BASE if "left" not in said else "self.count += 1\n"
    assert said in refused(edit, base)
