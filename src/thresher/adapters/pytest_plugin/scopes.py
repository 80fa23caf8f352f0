"""Tests that must not run at the same time: what ``--dist loadscope``, ``loadfile`` and ``loadgroup`` ask for."""

from collections import Counter
from collections.abc import Iterable, Mapping


class Scopes:
    """A scope belongs to one worker as long as that has runs of it. With other ``--dist``, tests have no scope.

    >>> scopes = Scopes("loadfile")
    >>> scopes.learn(["a.py::one", "a.py::two"], {})
    >>> scopes.take("a.py::one", "gw0"), scopes.take("a.py::two", "gw1")
    (True, False)
    >>> scopes.give_back("a.py::one")
    >>> scopes.take("a.py::two", "gw1")
    True
    """

    def __init__(self, dist: str) -> None:
        self._dist = dist
        self._of: dict[str, str] = {}  # the scope of a test
        self._owner: dict[str, object] = {}
        self._count = Counter[str]()

    def learn(self, tests: Iterable[str], groups: Mapping[str, str]) -> None:
        """What the tests' scopes are, from their node ids and the groups of those that have one."""
        for nodeid in tests:
            if self._dist == "loadfile":
                self._of[nodeid] = nodeid.split("::", 1)[0]
            elif self._dist == "loadscope":
                self._of[nodeid] = nodeid.rsplit("::", 1)[0]
            elif self._dist == "loadgroup" and nodeid in groups:
                self._of[nodeid] = groups[nodeid]

    def take(self, nodeid: str, node: object) -> bool:
        """Whether the worker may run this test; it then does."""
        scope = self._of.get(nodeid)
        if scope is None:
            return True
        if self._owner.setdefault(scope, node) != node:
            return False
        self._count[scope] += 1
        return True

    def give_back(self, nodeid: str) -> None:
        """A run of this test has ended, or is taken from its worker."""
        scope = self._of.get(nodeid)
        if scope is not None:
            self._count[scope] -= 1
            if not self._count[scope]:
                del self._owner[scope]
