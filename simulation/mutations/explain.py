"""Mutations of explanations."""

from __future__ import annotations

from typing import Final

EXPLAIN: Final = r"""
== _explain/explainer.py
* the group is not read again
- after = question.read(self.table)
+ after = before
? ../unit/explain/test_traffic.py::test_a_change_that_both_the_lines_and_the_last_read_show_is_no_difference
* a change between the reads is not named
- CHANGED: group in changed,
+ CHANGED: False,
? ../unit/explain/test_traffic.py::test_a_change_between_the_reads_is_a_difference_that_says_so
* what waits in the quarantine is not named
- WAITS[waiting > 1].format(waiting): waiting,
+ WAITS[waiting > 1].format(waiting): False,
? ../unit/explain/test_explanations.py::test_events_that_where_leaves_out_are_no_lines_and_those_that_wait_are_named
* another definition than the registered one is explained
- if not same_definition(declaration, wanted):
+ if False:
? ../unit/explain/test_explanations.py::test_lines_are_made_by_the_registered_definition_and_another_one_is_refused
* lines are made without the condition of the definition
- plan = Plan(tuple(with_below(_timeless(declared))))
+ plan = Plan(tuple(with_below(replace(_timeless(declared), where=None))))
? test_pairs.py::test_every_pair_of_features_is_exact_whatever_goes_wrong
* lines of other groups count, too
- part = question.part(group, numbers) if question.holds(group) else {}
+ part = question.part(group, numbers)
? ../unit/explain/test_explanations.py::test_items_of_a_source_table_are_explained_by_their_keys
* what came late is no line
- free: dict[str, Any] = {"retention": None}
+ free: dict[str, Any] = {}
? ../unit/explain/test_explanations.py::test_what_came_too_late_is_a_difference_that_says_so
* a difference is smoothed over
- if lacking:
+ if False:
? ../unit/explain/test_explanations.py::test_a_group_that_was_changed_by_hand_shows_exactly_that_as_a_difference
* a difference that nothing shows is called an expiry
- reasons.insert(0, UNEXPLAINED)
+ pass
? ../unit/explain/test_explanations.py::test_a_group_that_was_changed_by_hand_shows_exactly_that_as_a_difference
* a name that is not filled is called complete
- INCOMPLETE: not names[declared.name].is_complete,
+ INCOMPLETE: False,
? ../unit/explain/test_traffic.py::test_a_name_that_is_not_filled_says_so
* lines that are not shown do not add up
- self._counts[group] += 1
+ self._counts[group] += 1
+                     if self._counts[group] > 2:
+                         self._sums[group] = {}
? ../unit/explain/test_explanations.py::test_the_first_lines_are_shown_and_all_add_up
* where no line is shown, none is read
- most, lines = max(limit, 1), self._lines(plan, begun)
+ most, lines = limit, self._lines(plan, begun)
? ../unit/explain/test_explanations.py::test_the_first_lines_are_shown_and_all_add_up
* the whole table is read unasked
- if not self.reach.ranges and not scan:
+ if False:
? ../unit/explain/test_explanations.py::test_a_scan_is_refused_with_its_price_unless_it_is_asked_for

== _explain/reach.py
* rows of a chunk that take back others add up with them
- _SIGNS: Final = {"+": 1, "-": -1}
+ _SIGNS: Final = {"+": 1, "-": 1}
? ../unit/explain/test_explanations.py::test_rows_of_packed_events_that_were_taken_back_stand_with_what_took_them_back
"""
