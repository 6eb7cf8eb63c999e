"""Mutations of erasures."""

from __future__ import annotations

from typing import Final

ERASE: Final = r"""
== _erase/eraser.py
* a copy does not know what was erased before it had counted it
- if counts == "keep":
+ if False:
? test_given_up_repaired.py::test_what_was_erased_before_the_copy_had_counted_it_is_unknown
* rows that are taken out of chunks are not noted
-                 # Rows that are taken back leave their chunk, too.
-                 self._note()
+
? test_verdicts.py::test_a_name_exceeds_its_sources_once_something_was_erased_that_it_counts

== _erase/eraser.py
* an entry is erased while it waits
- stays = state == WAITING or
+ stays =
? test_waiting_entries.py::test_nothing_is_erased_while_a_copy_waits
* entries of a backfill are erased while it goes on
- state == PROVISIONAL and bool(read_registry(self._table).runs)
+ False
? test_waiting_entries.py::test_an_entry_of_a_backfill_that_goes_on_stays_until_that_is_over
"""
