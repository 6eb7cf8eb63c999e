"""Mutations of backfills, verifications and drops."""

from __future__ import annotations

from typing import Final

BACKFILL: Final = r"""
== _backfill/backfill.py
* a baseline is added again
- mark.name = BASELINE
+ mark.name = f"{BASELINE}{id(self)}"
? test_backfill.py::test_a_baseline_that_was_added_before_its_process_died_is_not_added_again
* readers see what counts the filled aggregates before it has caught up
-         yield from self._settle(plan)
? test_run_guards.py::test_incomplete_groups_are_not_counted_as_if_they_were_whole
* a backfill that rested adds members that are gone
- if not delta.layout.is_gone(delta.group, now)]
+ ]
? test_expiring_members.py::test_a_backfill_that_rested_adds_no_member_that_may_be_gone

* parts of a baseline are the same record to pages
- first, last = padded(str(begin + part * step + 1)), padded(str(begin + (part + 1) * step))
+ first, last = padded(str(begin + 1)), padded(str(begin + step))
? test_page_guards.py::test_each_part_of_a_baseline_is_added_once

== _backfill/runner.py
* the last one of an item's images counts
- (depths[shard], change.sequence) < (depths
+ (depths[shard], change.sequence) > (depths
? test_backfill_quarantine.py::test_an_item_that_goes_bad_meanwhile_waits_once
* an item that changed after the cut waits as the scan found it
- if item.digest not in changed and
+ if
? test_backfill_quarantine.py::test_an_item_that_changes_meanwhile_waits_as_it_was_at_the_cut

== _backfill/backfill.py

== _backfill/verification.py
* what was redriven and erased since a cut is taken for drift
- erased.update(() if STATE in item else names_of(item) or run.names)
+ pass
? test_waiting_entries.py::test_what_is_redriven_and_erased_during_a_verification_is_no_drift
* a repair does not outlive invocations whose batch was given up
- self._until(until, SETTLING
+ self._until(-1.0, SETTLING
? test_given_up_repaired.py::test_a_repair_outlives_an_invocation_whose_batch_lambda_gave_up_on
* a repair outlives only what was given up on before its cut
- until = self.now() + self.outlives
+ until = self.state.run.since + self.outlives
? test_given_up_repaired.py::test_a_repair_outlives_what_lambda_gives_up_on_before_the_log_is_past_the_scan
* a repair lowers what may be right
- drifted = [each for each in self.differences if each.verdict == "drifted"]
+ drifted = self.differences
? test_given_up_repaired.py::test_a_repair_outlives_invocations_only_where_it_sets_something
* a counter is compared with sources that it has not
- or registry.names.keys() - direct):
+ or registry.names.keys()):
? test_verdicts.py::test_a_counter_is_neither_verified_nor_backfilled

== _backfill/runner.py
* any page of a shard's log says that it is past the scan
- float(page["created"]["N"]) > end or page["beats"]["N"] != "0"
+ float(page["created"]["N"]) > 0
? test_run_guards.py::test_a_backfill_waits_until_the_log_is_past_its_scan

== _backfill/backfill.py
* groups over something incomplete count as whole
- found |= {below.name for below in with_below(each)} & lacking
+ pass
? test_run_guards.py::test_incomplete_groups_are_not_counted_as_if_they_were_whole
* a backfill leaves the parts of a composite out
- found = with_parts(names, declared.values()) or lacking
+ found = set(names) or lacking
? test_run_commands.py::test_a_distinct_is_backfilled_with_its_members
* a backfill fills counters
- if isinstance(declared[name].source, Direct):
+ if False:
? test_verdicts.py::test_a_counter_is_neither_verified_nor_backfilled

== _backfill/verification.py
* entries that were redriven a moment ago are taken for counted
- or float(item.get(CHANGED_AT, {}).get("N", 0)) >= run.since - SKEW
? test_waiting_entries.py::test_an_entry_that_is_redriven_while_groups_are_read_is_no_drift

== _backfill/verification.py
* a repair is done twice
- padded(str(each.repairs + 1))
+ padded(str(each.repairs + 2 + __import__("time").monotonic_ns()))
? test_backfill.py::test_a_difference_that_another_process_has_repaired_is_not_repaired_again
* a repair of a measure repairs what groups are ranked by
- delta.measures.setdefault(SCORE, 0)
+ pass
? test_verdicts.py::test_scores_are_verified_and_repaired_on_their_own

== _backfill/runner.py
* a backfill does not wait for the log
- waiting = self.state.lineage.waiting(acknowledged)
+ waiting: list[str] = []
? test_run_guards.py::test_a_backfill_waits_until_the_log_is_past_its_scan
* a shard may begin near a cut
- if self.state.phase != WAITING or self._same_shards():
+ if True:
? test_run_guards.py::test_a_run_begins_again_if_a_shard_was_split_near_its_cut

== _backfill/backfill.py
* a name that is filled anew may hold what went before
- , "surplus": False}
+ }
? test_verdicts.py::test_a_name_that_is_filled_anew_holds_no_more_than_its_sources

== _backfill/feeds.py
* a name is filled on top of what a transaction had counted in it
- if is_filled(self.run, item) and not is_own:
+ if False:
? test_registry.py::test_what_was_counted_before_a_name_was_registered_goes_before_it_is_filled
* a page of the scan is written over another
- **put_as_seen(self.table.name, item, {}, ()))
+ Item=item)
? test_run_guards.py::test_a_scan_goes_on_from_another_that_read_the_same_page
* an image that a scan finds waits at once
- image, PROVISIONAL)
+ image, "waiting")
? test_backfill_quarantine.py::test_an_item_that_goes_bad_meanwhile_waits_once

== _backfill/runner.py
* one shard's heartbeat is enough
- return [] if acknowledged.get(ONLY_SHARD) else
+ return [] if any(acknowledged.values()) else
? test_run_guards.py::test_the_slowest_shard_is_waited_for
* an emulator's log is not read
- for shard in self.lineage.in_order:
+ for shard in self.lineage.parents:
? test_alone_in_emulator.py::test_a_backfill_and_a_verification_take_seconds_and_are_exact
* shards that go on splitting are waited for
- acknowledged.get(shard, False) or is_done(self.parents.get(shard, ""))
+ acknowledged.get(shard, False)
? test_run_guards.py::test_children_of_a_shard_that_has_acknowledged_a_run_need_not

== _backfill/verification.py
* a group that waits is judged by what it lacks
- if waits[ref]:
+ if False:
? test_waiting_entries.py::test_a_group_waits_for_the_quarantine_whatever_it_lacks
* a sum cannot grow by what expires
- number > 0 and _grows(declaration, name)
+ number > 0
? test_verdicts.py::test_expired_items_make_a_group_no_smaller
* a group that is gone may have expired
- if is_gone or (number > 0
+ if (number > 0
? test_verdicts.py::test_a_group_that_is_gone_has_lost_all_there_is

== _backfill/verification.py
* a restored table knows of all items that have expired
- is_restored, declared = "RestoreSummary" in table["Table"],
+ is_restored, declared = False,
? test_given_up_repaired.py::test_what_expired_before_the_copy_had_counted_it_is_unknown_and_stays_counted

== _backfill/feeds.py
* a verification knows positions by checkpoints only
- max([through[shard], *marks[shard]])
+ through[shard]
? test_backfill.py::test_a_count_that_is_right_has_no_differences_while_traffic_flows
* a verification knows positions by watermarks only
- max([through[shard], *marks[shard]])
+ max(["", *marks[shard]])
? test_run_guards.py::test_records_that_a_checkpoint_covers_need_no_watermark

== _backfill/verification.py
* a verification takes what is logged for counted
- change.is_direct or change.sequence <= held[ref].applied.get(shard, "")
+ True
? test_run_guards.py::test_records_logged_but_not_counted_yet_are_no_drift
* entries in quarantine are taken for drift
- if waits[ref]:
+ if False:
? test_waiting_entries.py::test_a_group_waits_for_the_quarantine_whatever_it_lacks
* shards that begin while groups are read are not looked at
- if known.issuperset(self.state.lineage.parents):
+ if True:
? test_run_guards.py::test_records_of_a_shard_that_began_while_groups_were_read_are_no_drift
* a verification compares what its scan takes for late
- if number and name not in late}
+ if number}
? test_backfill.py::test_events_that_a_scan_takes_for_late_are_no_drift
* a verification takes what transactions have counted for drift
- yield from self._await_transactions(total)
+ pass
? test_verdicts.py::test_counts_of_a_transaction_just_now_are_no_drift_and_not_repaired
* a verification does not wait for long enough until transactions are logged
- moment = self.now() + self.feeds.clocks
+ moment = self.now() - self.feeds.clocks
? test_verdicts.py::test_counts_of_a_transaction_just_now_are_no_drift_and_not_repaired
* a verification waits for the log of a run that another process has ended
-         if self.state.phase != COMPARING:
-             raise BackfillError(_ENDED.format(self.state.run.id))
-         for _
+         for _
? test_verdicts.py::test_no_transactions_are_waited_for_once_another_process_has_ended_the_run
* a verification goes on after another process has ended it
- if not self._ended(COMPLETE):
+ if not self._ended(COMPLETE) and False:
? test_run_guards.py::test_a_verification_that_another_process_has_ended_reports_nothing
* a verification compares members whose retention is over
- is_late or is_gone or
+ is_gone or
? test_expiring_members.py::test_a_verification_takes_nothing_that_is_over_for_drift
* a verification compares numbers whose members are gone
- return retention is not None and closing_times(
+ return False and closing_times(
? test_expiring_members.py::test_a_verification_takes_nothing_that_is_over_for_drift

== _backfill/feeds.py
* a run begins at once on AWS, too
- return EMULATOR_HEADER in described.get("ResponseMetadata", {}).get("HTTPHeaders", {})
+ return True
? test_alone_in_emulator.py::test_where_no_answer_says_so_a_run_waits_for_other_processes
"""
