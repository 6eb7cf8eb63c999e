"""The safety mechanisms of erasures of what waits: how to switch each one off, and which test must notice."""

from __future__ import annotations

from typing import Final

from simulation.mechanisms import Mutation

_WAITING: Final = "test_erase_waiting.py::"
_DIES: Final = _WAITING + "test_a_run_that_dies_between_an_entry_and_its_event_is_completed"

ERASURE_MUTATIONS: Final = (
    Mutation(
        "an entry that waits is erased without a discard",
        "_erase/quarantine_erase.py",
        "done = discards.discard(entry)",
        "done = self._update(item, None) is None",
        _WAITING + "test_an_entry_that_is_erased_with_its_event_leaves_nothing_to_be_taken_back",
    ),
    Mutation(
        "an entry that comes meanwhile is erased without consent",
        "_erase/quarantine_erase.py",
        "is_left = self._waits(item) and not (drops and part.left is not None)",
        "is_left = False",
        _WAITING + "test_without_consent_an_entry_that_comes_meanwhile_stays",
    ),
    Mutation(
        "what a discard does not make right is dropped",
        "_erase/quarantine_erase.py",
        "done = redrive(self._table, entry)",
        "done = self._update(item, None) is None",
        _WAITING + "test_an_entry_that_is_erased_with_its_event_leaves_nothing_to_be_taken_back",
    ),
    Mutation(
        "an object that comes meanwhile is erased without consent",
        "_erase/eraser.py",
        "given_up = sum(bucket.sweep(writes=drops) for bucket in self._buckets)",
        "given_up = sum(bucket.sweep(writes=writes) for bucket in self._buckets)",
        _WAITING + "test_without_consent_an_object_that_comes_meanwhile_stays",
    ),
    Mutation(
        "what a backfill has met is erased while that goes on",
        "_erase/quarantine_erase.py",
        "state == PROVISIONAL and bool(read_control(self._table).runs)",
        "False",
        _WAITING + "test_an_entry_of_a_backfill_that_goes_on_stays_until_that_is_over",
    ),
    Mutation(
        "a mark does not outlive the mark of an erasure",
        "_items/discard_marks.py",
        "_UNSEEN: Final = frozenset((NOT_IN, ERASED, TTL))",
        "_UNSEEN: Final = frozenset((NOT_IN,))",
        _WAITING + "test_a_plain_event_is_dropped_where_it_waits_and_counted_nowhere",
    ),
    Mutation(
        "half of what was taken back and erased is discarded with what came",
        "_stream/discards.py",
        "(is_alike or (_has_come_back(entry) and _has_come_back(other)))",
        "True",
        _DIES,
    ),
    Mutation(
        "a row that was taken back and erased is redriven as if it came",
        "_fold/records.py",
        '(name == "INSERT" and ERASED in new and PK not in new)',
        "False",
        _WAITING + "test_what_was_taken_out_of_a_chunk_uncounted_is_redriven_as_it_was_erased",
    ),
)
