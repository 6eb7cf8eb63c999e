"""Mutations of erasures."""

from __future__ import annotations

from typing import Final

ERASE: Final = r"""
== _erase/eraser.py
* a copy does not know what was erased before it had counted it
- if counts == "keep":
+ if False:
? test_restore.py::test_what_was_erased_before_the_copy_had_counted_it_is_unknown
* rows that are taken out of chunks are not noted
-                 # Rows that are taken back leave their chunk, too.
-                 self._note()
+
? test_verdicts.py::test_a_name_exceeds_its_sources_once_something_was_erased_that_it_counts

== _erase/eraser.py
* an erasure knows no name that came after it began
- if not registry.names.keys() >= {*entry.names}:
+ if False:
? test_erase_waiting.py::test_an_erasure_that_began_before_a_name_came_discards_none_of_it
* an entry that waits is erased without a discard
- done = discard(self._table, entry, plan, origins)
+ done = self._reduce(item, None) is None
? test_erase_waiting.py::test_an_entry_that_is_erased_with_its_event_leaves_nothing_to_be_taken_back
* an entry that comes meanwhile is erased without consent
- is_left = is_left and not (drops and left is not None)
+ is_left = False
? test_erase_waiting.py::test_without_consent_an_entry_that_comes_meanwhile_stays
* entries that a redrive counts are dropped
- done = redrive(self._table, entry)
+ done = self._reduce(item, None) is None
? test_erase_waiting.py::test_an_entry_that_is_erased_with_its_event_leaves_nothing_to_be_taken_back
* entries of a backfill are erased while it goes on
- state == PROVISIONAL and bool(read_registry(self._table).runs)
+ False
? test_erase_waiting.py::test_an_entry_of_a_backfill_that_goes_on_stays_until_that_is_over
"""
