"""How strongly a box confines, in words that travel with every result."""

from __future__ import annotations

from enum import IntEnum


class BoxUnavailable(RuntimeError):
    """No box can be had as asked. The message says what was found and what to do about it."""


class Tier(IntEnum):
    """The four ways a box can confine; a lower number is stronger.

    Tier 2 is for a container that lives for one submission and whose root may make no namespaces: the
    code runs as another user, who may read whatever the modes of files allow. Tier 3 (Landlock, seccomp
    and the watchdog) is named here and not built: asking for it is an error.
    """

    NAMESPACES = 1
    CONTAINER = 2
    LANDLOCK = 3
    NONE = 4

    @property
    def title(self) -> str:
        """Return the words shown to an instructor."""
        return _TITLES[self]

    @property
    def guards_itself(self) -> bool:
        """Is the box's own process out of student code's reach? In tiers 2 and 4 one user runs both."""
        return self is Tier.NAMESPACES


_TITLES = {
    Tier.NAMESPACES: "tier 1: bubblewrap, namespaces and seccomp",
    Tier.CONTAINER: "tier 2: another user and seccomp, in a container for one submission",
    Tier.LANDLOCK: "tier 3: Landlock and seccomp (not built)",
    Tier.NONE: "tier 4: NO SANDBOX, the submissions were trusted",
}


def choose(*, trust: bool) -> Tier:
    """Return tier 1, or tier 4 where the caller trusts the code. Never one in place of the other.

    Whether tier 1 works on this machine is found out by starting it; when it does not, the start
    raises `BoxUnavailable`, because a weaker box chosen silently would be believed to be strong.
    """
    return Tier.NONE if trust else Tier.NAMESPACES
