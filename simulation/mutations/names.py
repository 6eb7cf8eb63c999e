"""Mutations of what names go through: the registry, runs, erasures."""

from __future__ import annotations

from typing import Final

NAMES: Final = r"""
== _backfill/backfill.py
* a baseline is added again
~ mark.name = BASELINE → mark.name = f"{BASELINE}{id(self)}"
? test_backfill.py::test_a_baseline_that_was_added_before_its_process_died_is_not_added_again
* parts of a baseline are the same record to pages
- first, last = padded(str(begin + part * step + 1)), padded(str(begin + (part + 1) * step))
+ first, last = padded(str(begin + 1)), padded(str(begin + step))
? test_page_guards.py::test_each_part_of_a_baseline_is_added_once
* a backfill leaves the parts of a composite out
~ found = with_parts(names, declared.values()) or lacking → found = set(names) or lacking
? test_run_commands.py::test_a_distinct_is_backfilled_with_its_members
* a dropped name is removed before its items
~ if (yield from self._delete_all()): → if self._drops or (yield from self._delete_all()):
? test_registry.py::test_a_dropped_name_is_gone_and_may_come_back_with_another_meaning
* a name is opened though it was filled since it was emptied
- is_same = all(registry.entries.get(name) == entry for name, entry in self._emptied.items())
+ is_same = True
+         self._emptied = {name: registry.entries[name] for name in self._emptied}
? test_registry.py::test_a_slow_process_opens_nothing_that_another_has_filled

== _backfill/feeds.py
* a page of the scan is written over another
~ **put_as_seen(self.table.name, item, {}, ())) → Item=item)
? test_run_guards.py::test_a_scan_goes_on_from_another_that_read_the_same_page
* an image that a scan finds waits at once
~ image, PROVISIONAL) → image, "waiting")
? test_backfill_quarantine.py::test_an_item_that_goes_bad_meanwhile_waits_once
* a verification knows positions by checkpoints only
~ max([through[shard], *marks[shard]]) → through[shard]
? test_backfill.py::test_a_count_that_is_right_has_no_differences_while_traffic_flows
* a verification knows positions by watermarks only
~ max([through[shard], *marks[shard]]) → max(["", *marks[shard]])
? test_run_guards.py::test_records_that_a_checkpoint_covers_need_no_watermark

== _backfill/runner.py
* the last one of an item's images counts
~ (depths[shard], change.sequence) < (depths → (depths[shard], change.sequence) > (depths
? test_backfill_quarantine.py::test_an_item_that_goes_bad_meanwhile_waits_once
* any page of a shard's log says that it is past the scan
~ float(page["created"]["N"]) > end or page["beats"]["N"] != "0" → float(page["created"]["N"]) > 0
? test_run_guards.py::test_a_backfill_waits_until_the_log_is_past_its_scan
* a backfill does not wait for the log
~ waiting = self.state.lineage.waiting(acknowledged) → waiting: list[str] = []
? test_run_guards.py::test_a_backfill_waits_until_the_log_is_past_its_scan
* one shard's heartbeat is enough
~ return [] if acknowledged.get(ONLY_SHARD) else → return [] if any(acknowledged.values()) else
? test_run_guards.py::test_the_slowest_shard_is_waited_for
* an emulator's log is not read
~ for shard in self.lineage.in_order: → for shard in self.lineage.parents:
? test_alone_in_emulator.py::test_a_backfill_and_a_verification_take_seconds_and_are_exact

== _backfill/verification.py
* a repair does not outlive invocations whose batch was given up
~ self._until(until, SETTLING → self._until(-1.0, SETTLING
? test_given_up_repaired.py::test_a_repair_outlives_an_invocation_whose_batch_lambda_gave_up_on
* a repair outlives only what was given up on before its cut
~ until = self.now() + self.outlives → until = self.state.run.since + self.outlives
? test_given_up_repaired.py::test_a_repair_outlives_what_lambda_gives_up_on_before_the_log_is_past_the_scan
* a repair lowers what may be right
~ drifted = [each for each in self.differences if each.verdict == "drifted"] → drifted = self.differences
? test_given_up_repaired.py::test_a_repair_outlives_invocations_only_where_it_sets_something
* a repair is done twice
~ padded(str(each.repairs + 1)) → padded(str(each.repairs + 2 + __import__("time").monotonic_ns()))
? test_backfill.py::test_a_difference_that_another_process_has_repaired_is_not_repaired_again

== _control/counted_names.py
* a process folds by its own declarations
~ self._plans[ahead] = plan_of(self.registry, ahead) → self._plans[ahead] = Plan(self._own)
? test_registry.py::test_a_name_keeps_its_definition_whichever_version_counts
* a process folds only what its own code declares
- self._plans[ahead] = plan_of(self.registry, ahead)
+ self._plans[ahead] = plan_of(self.registry, ahead | {*self.undeclared})
? test_registry.py::test_a_name_that_nothing_declares_counts_on
* a table whose stream is older than what it shows is said to be whole
~ return is_old or began → return began
? test_backfill.py::test_a_table_that_is_older_than_what_its_stream_shows_is_not_whole
* a deployment replaces definitions
- changes = [(None, entry) for entry in new]
+ own = [each for each in entries_of(self._own) if each.name in registry.entries]
+             changes = [*((None, each) for each in new), *((registry.entries[each.name], each) for each in own)]
? test_registry.py::test_a_name_keeps_its_definition_whichever_version_counts
* a threshold watches numbers that lack their baseline
- begin = entry.at + RUN_OPEN_AFTER if entry.run else 0
-         watching = registry.thresholds.get(each.name, ()) if entry.is_complete else ()
+ begin = 0
+         watching = registry.thresholds.get(each.name, ())
? test_thresholds.py::test_what_a_name_counts_before_its_baseline_is_added_crosses_no_line
* a name goes stale whatever it is by then
- write_registry(self._table, registry, [(entry, entry.entering(STALE, now))])
+ self._table.client.put_item(TableName=self._table.name, Item=entry.entering(STALE, now).item())
? test_registry.py::test_a_stale_mark_is_no_step_back
* records after a cut are logged before those before it are counted
~ for past_runs, part in groupby(changes, past): → for past_runs, part in [(past(changes[-1]), changes)]:
? test_run_guards.py::test_records_before_the_cut_are_counted_before_a_heartbeat_acknowledges_it

== _control/registry.py
* a reader takes a stale name for complete
~ return self.state == COMPLETE → return self.state in (COMPLETE, STALE)
? test_registry.py::test_a_reader_relies_on_what_it_has_read_for_a_minute
* two processes found a table
~ put_as_seen(table.name, new, registry.header, (_SERIAL,)) → {"TableName": table.name, "Item": new}
? test_registry.py::test_only_one_process_founds_a_table
* names that contradict each other are registered at once
~ if attributes is not None: → if attributes:
? test_registry.py::test_names_that_contradict_each_other_are_not_registered_at_once
* a verification goes on of a name that went stale
- since = {name: entry.at for name, entry in self.entries.items() if entry.is_complete}
+ since = dict.fromkeys(self.entries, 0)
? test_registry.py::test_a_verification_of_a_name_that_goes_stale_is_void_and_holds_nothing_up
* a note of what has gone is lost when a name changes its state
~ , "fresh", "surplus") → , "fresh")
? test_verdicts.py::test_a_change_of_a_name_that_was_noted_meanwhile_is_refused

== _control/run_items.py
* a run's log holds no images
~ rows = list(logged(run, plan, relevant, unfoldable)) → rows = []
? test_backfill.py::test_a_count_that_is_right_has_no_differences_while_traffic_flows
* a cut moves
- self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ()))
+ self._table.write("put_item", Item=item)
? test_backfill_quarantine.py::test_an_item_that_changes_meanwhile_waits_as_it_was_at_the_cut
* each delivery has a cut of its own
- if first is None or not self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ())):
-             item = self._table.read_item(key)
+ if first is None:
+             return NO_CUT
? test_run_guards.py::test_a_cut_stays_where_it_is_though_times_of_creation_do_not_grow
* images that a transaction has counted are early or late as of the cut
~ alone(images[NEW], at) if → new if
? test_backfill.py::test_events_that_a_transaction_counts_long_after_the_cut_are_not_early
"""
