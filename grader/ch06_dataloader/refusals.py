"""What a check of refused inputs says: which input, and what came in place of the exception."""

from grader import Mismatch
from grader.core.evidence import Evidence


def assert_refused(evidence: Evidence, kind: str, case: str) -> None:
    """Fail unless the student's code raised a `kind`, or what descends from it, on this case."""
    raised = evidence.raised
    if raised is None:
        got = "nothing was raised"
    elif raised.is_a(kind):
        return
    else:
        got = f"{raised.type}: {raised.message}" if raised.message else raised.type
    raise Mismatch(case, (("expected", f"a {kind}"), ("got", got)))
