"""How the replies of one interview are named and kept: by the request that each answers."""

from __future__ import annotations

import hashlib

TRANSCRIPT_LIMIT = 64 * 2**20
"""Bytes of replies that are kept per exercise. Honest ones take one or two MiB; a hostile one could
fill the disk. What is not kept cannot be judged again without running the code again."""

ENDED = "ended"
"""Where a transcript says which request ended the process, and how."""


def request_key(request: bytes) -> str:
    """Return the name under which the reply to a request is kept."""
    return hashlib.sha256(request).hexdigest()
