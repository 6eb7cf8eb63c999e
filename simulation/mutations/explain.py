"""Mutations of explanations."""

from __future__ import annotations

from typing import Final

EXPLAIN: Final = r"""
== _explain/explainer.py
* groups are read after what they count
- self._items.setdefault(group, [])
-         return table.clock()
+ self._items.setdefault(group, [])
+         self._items |= asked.read(table)
+         return table.clock()
? ../unit/explain/test_traffic.py::test_a_change_after_the_group_was_read_is_in_neither
* what changed after a position is explained as it is now
- if is_changed and sequence > self._applied_in(group, shard):
+ if False:
? ../unit/explain/test_traffic.py::test_a_change_after_the_group_was_read_is_in_neither
* what a group has applied is explained as it was before
- if is_changed and sequence > self._applied_in(group, shard):
+ if is_changed:
? test_pairs.py::test_every_pair_of_features_is_exact_whatever_goes_wrong
* the stream is explained as far as it shows at once
- while left > 0 and any(
+ while False and any(
? ../unit/explain/test_traffic.py::test_the_stream_is_read_again_once_it_shows_all_that_was_written_before
* what a transaction counts meanwhile is nothing to explain
- if is_direct:
+ if False:
? ../unit/explain/test_traffic.py::test_a_group_that_a_transaction_counted_in_is_explained_again
* records before the cut of a backfill are taken out of its baseline
- and not self._is_in_baseline(shard, record):
+ and True:
? test_pairs.py::test_every_pair_of_features_is_exact_whatever_goes_wrong
* what made a page ranks as what changed it first
- int(new[VERSION]["N"]) - 1
+ int(new[VERSION]["N"])
? ../unit/explain/test_traffic.py::test_the_first_change_of_a_group_in_a_page_is_the_one_that_made_the_page
* a repaired group without watermarks has applied nothing
- is_lost = not self._applied_in(group, shard) and
+ is_lost = False and
? ../unit/explain/test_traffic.py::test_a_group_that_was_lost_and_repaired_has_an_unknown_position
* a shard that was counted to its end is read from there
- if after < LAST_SEQUENCE else ()
+ if True else ()
? ../unit/explain/test_traffic.py::test_a_shard_that_was_counted_to_its_end_is_not_read
* entries that are redriven after a position add up twice
- if is_before and not (shard and sequence <= self._applied_in(group, shard)):
+ if is_before:
? test_pairs.py::test_every_pair_of_features_is_exact_whatever_goes_wrong
* a split shows groups as they were, whatever has changed and counted since
- _MOVED if is_moved else rank
+ rank
? ../unit/explain/test_traffic.py::test_a_split_shows_no_group_that_was_changed_and_counted_since
* a difference is smoothed over
- for why, numbers in self._judged(group, missing):
+ for why, numbers in ():
? ../unit/explain/test_explanations.py::test_a_group_that_was_changed_by_hand_shows_exactly_that_as_a_difference
* entries of the quarantine are no lines
- if item.get(STATE) == {"S": WAITING}:
+ if False:
? ../unit/explain/test_explanations.py::test_events_that_where_leaves_out_or_that_wait_have_their_reasons
* the whole table is read unasked
- if not self.reach.ranges and not scan:
+ if False:
? ../unit/explain/test_explanations.py::test_a_scan_is_refused_with_its_price_unless_it_is_asked_for

== _explain/lines.py
* the last change after a position is shown, not the first
- WHERE excluded.rank <= rank"
+ WHERE excluded.rank >= rank OR rank = '~'"
? ../unit/explain/test_traffic.py::test_a_change_after_the_group_was_read_is_in_neither

== _explain/lines.py
* rows of a chunk that take back others add up with them
- -1 if sign == "-" else 1
+ 1
? ../unit/explain/test_explanations.py::test_rows_of_packed_events_that_were_taken_back_stand_with_what_took_them_back
"""
