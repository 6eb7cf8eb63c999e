"""Pages as one process knows them: at which level they are, learned from the pages that it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dynamodb_counters._fold.page_layout import BITS, Page, level_of
from dynamodb_counters._table import Remembered, Table

_MOST_KNOWN: Final = 100_000


class PageLevels(Remembered):
    """Levels of one table's pages: guesses, which a page that is asked corrects."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._known: dict[tuple[str, str], dict[int, int]] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self._guessed: set[tuple[str, str, int]] = set()
        """Pages whose level is known to be less only because another one is not there."""
        self._lost: set[tuple[str, str, int]] = set()
        """Pages that are not there, though the page that each has split off from says so."""
        self._size = 0

    def clear(self) -> None:
        """Forget all pages, as a name may have been emptied and filled anew."""
        self.__init__(self._table)  # type: ignore[misc]

    def locate(self, name: str, shelf: str, number: int) -> Page:
        """The page in which a hash lies as far as is known; an unknown level is taken to be the latest one met."""
        known, first, least = self._known.get((name, shelf), {}), 0, 0
        while True:
            level = known.get(first)
            guess = max(least, self._latest.get((name, shelf), 0)) if level is None else level
            home = _first(number, guess)
            if home == first or (level is None and home not in known):
                # Pages differ by few levels: one that is known may hold it all the same.
                levels = range(max(least, guess - 2), guess + 3) if level is None else ()
                guess = max([each for each in levels if known.get(_first(number, each)) == each], default=guess)
                home = _first(number, guess)
                return Page(shelf, home, guess, (name, shelf, home) in self._lost)
            if level is not None:
                # On to the page that split off before the hashes part.
                least = BITS + 1 - (number ^ first).bit_length()
                home = _first(number, least)
            else:
                least = _born(home)
            first = home

    def learn(self, name: str, page: Page, item: Mapping[str, Any] | None) -> bool:
        """Take note of a page that was asked; return whether it is there at the level that was guessed.

        The page of level 0 is there before its first update. One that is not there, though it has split off, has
        expired, or a restore lacks it: the next update creates it.
        """
        if item:
            self._lost.discard((name, page.shelf, page.first))
            self._note(name, page.shelf, page.first, level_of(item))
            return level_of(item) == page.level
        if page.first:
            born, known = _born(page.first), self._known.get((name, page.shelf), {})
            before = _first(page.first, born - 1)
            known.pop(page.first, None)
            if known.get(before, 0) >= born and (name, page.shelf, before) not in self._guessed:
                self._lost.add((name, page.shelf, page.first))
                return page.is_lost
            # Its groups are still with the page that it is to split off from, of whatever level.
            self._note(name, page.shelf, before, born - 1, is_guess=True)
            return False
        self._note(name, page.shelf, 0, 0)
        return page.level == 0

    def _note(self, name: str, shelf: str, first: int, level: int, *, is_guess: bool = False) -> None:
        if self._size >= _MOST_KNOWN:
            self.clear()
        known = self._known.setdefault((name, shelf), {})
        self._size += first not in known
        known[first] = self._latest[name, shelf] = level
        (self._guessed.add if is_guess else self._guessed.discard)((name, shelf, first))


def _first(number: int, level: int) -> int:
    """The first hash that begins with as many bits of another."""
    return number >> BITS - level << BITS - level


def _born(first: int) -> int:
    """The level at which a page came into being: it begins with that many bits, of which the last is 1."""
    return BITS + 1 - (first & -first).bit_length()
