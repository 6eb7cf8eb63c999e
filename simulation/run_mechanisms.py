"""The safety mechanisms of backfills and verifications: how to switch each one off, and which test must notice."""

from __future__ import annotations

from typing import Final

from simulation.mechanisms import Mutation

_BACKFILLS: Final = "test_backfill_schedules.py::test_every_backfill_and_redefinition_is_exact_whatever_goes_wrong"
_VERIFICATIONS: Final = "test_backfill_schedules.py::test_verifications_find_what_was_spoiled_and_nothing_else"
_GUARDS: Final = "test_run_guards.py::"
_GAPS: Final = "test_backfill.py::test_a_run_is_void_that_lacks_records_which_lambda_gave_up_on"

RUN_MUTATIONS: Final = (
    Mutation(
        "a run's log holds no images",
        "_stream/run_logs.py",
        "rows = list(logged(run, plan, told))",
        "rows = []",
        _BACKFILLS,
    ),
    Mutation(
        "a backfill does not wait for the log",
        "_backfill/runner.py",
        "waiting = state.lineage.waiting(acknowledged)",
        "waiting: list[str] = []",
        "test_run_guards.py::test_a_backfill_waits_until_the_log_is_past_its_scan",
    ),
    Mutation(
        "one shard's heartbeat is enough",
        "_backfill/shards.py",
        "return [] if acknowledged.get(ONLY) else",
        "return [] if any(acknowledged.values()) else",
        _GUARDS + "test_the_slowest_shard_is_waited_for",
    ),
    Mutation(
        "a cut moves",
        "_stream/run_logs.py",
        'client.put_item(**put, ConditionExpression=f"attribute_not_exists({PK})")',
        "client.put_item(**put)",
        _BACKFILLS,
    ),
    Mutation(
        "of an item's images the last one counts",
        "_backfill/baseline.py",
        "or place < found[change.digest][0]",
        "or place > found[change.digest][0]",
        _BACKFILLS,
    ),
    Mutation(
        "a baseline is added again",
        "_backfill/backfill.py",
        '"attribute_not_exists(#baseline)"',
        '"attribute_not_exists(#baseline) OR attribute_exists(#baseline)"',
        _BACKFILLS,
    ),
    Mutation(
        "a run begins to count at once",
        "_backfill/runner.py",
        "OPEN_AFTER: Final = FRESH + 2 * CLOCKS",
        "OPEN_AFTER: Final = 1.0",
        _BACKFILLS,
    ),
    Mutation(
        "a run completes whose generation was dropped",
        "_backfill/backfill.py",
        "if state.run not in seen.runs or not is_whole:",
        "if False:",
        _GUARDS + "test_a_run_whose_generation_a_deployment_drops_at_the_end_is_void",
    ),
    Mutation(
        "what was just added is said to be whole",
        "_stream/deployments.py",
        "whole=False, since=era.valid_from",
        "whole=True, since=era.valid_from",
        _BACKFILLS,
    ),
    Mutation(
        "a repair is done twice",
        "_backfill/repair.py",
        'request["ConditionExpression"] = "attribute_not_exists(#repaired)"',
        'request["ConditionExpression"] = "attribute_not_exists(#repaired) OR attribute_exists(#repaired)"',
        _VERIFICATIONS,
    ),
    Mutation(
        "any page of a shard's log says that it is past the scan",
        "_backfill/log_tail.py",
        'float(page["created"]["N"]) > ended_at + CLOCKS or page["beats"]["N"] != "0"',
        'float(page["created"]["N"]) > 0',
        "test_run_guards.py::test_a_backfill_waits_until_the_log_is_past_its_scan",
    ),
    Mutation(
        "shards that go on splitting are waited for",
        "_backfill/shards.py",
        "return bool(parent) and is_done(parent)",
        "return False",
        _GUARDS + "test_what_a_shard_has_acknowledged_its_children_need_not",
    ),
    Mutation(
        "a page of the scan is written over another",
        "_backfill/scan.py",
        '                ConditionExpression=f"attribute_not_exists({PK})",\n',
        "",
        _GUARDS + "test_of_two_scans_that_read_the_same_page_one_goes_on_from_the_others",
    ),
    Mutation(
        "each delivery has a cut of its own",
        "_stream/run_logs.py",
        "known = self._put_cut(run, shard, first)",
        "known = first",
        _GUARDS + "test_a_cut_stays_where_it_is_though_times_of_creation_do_not_grow",
    ),
    Mutation(
        "a shard may begin near a cut",
        "_backfill/runner.py",
        "if state.phase != WAITING or self._same_shards(state):",
        "if True:",
        _GUARDS + "test_a_run_begins_anew_if_a_shard_was_split_near_its_cut",
    ),
    Mutation(
        "what a newer run looks at is dropped",
        "_backfill/backfill.py",
        "while declaration.name in names and isinstance(source, Aggregate):",
        "while False and isinstance(source, Aggregate):",
        _GUARDS + "test_what_a_newer_run_looks_at_is_kept_though_an_older_one_replaces_it",
    ),
    Mutation(
        "what is over something incomplete counts as whole",
        "_backfill/backfill.py",
        "            found |= {over.name} & left\n",
        "            break\n",
        _GUARDS + "test_what_lacks_something_is_not_counted_as_if_it_were_whole",
    ),
    Mutation(
        "a run completes that lacks what was declared again meanwhile",
        "_backfill/backfill.py",
        " and not _is_lacking(filled, declared, folded, seen.reads)",
        "",
        _GUARDS + "test_a_run_that_lacks_what_a_deployment_has_declared_again_is_void",
    ),
    Mutation(
        "readers see what counts the filled aggregates before it has caught up",
        "_backfill/backfill.py",
        "        yield from self._settle(state, plan)\n",
        "",
        _GUARDS + "test_what_lacks_something_is_not_counted_as_if_it_were_whole",
    ),
    Mutation(
        "a backfill does not ask for gaps in its log",
        "_backfill/backfill.py",
        "            self._require_no_gap(state)\n",
        "",
        _GAPS,
    ),
    Mutation(
        "a verification does not ask for gaps in its log",
        "_backfill/verification.py",
        "        self._require_no_gap(state)\n",
        "",
        _GAPS,
    ),
    Mutation(
        "a verification knows positions by checkpoints only",
        "_backfill/verification.py",
        "return max(checkpoint, *held) if held else checkpoint",
        "return checkpoint",
        "test_backfill.py::test_a_count_that_is_right_has_no_differences_while_traffic_flows",
    ),
    Mutation(
        "a verification knows positions by watermarks only",
        "_backfill/verification.py",
        "return max(checkpoint, *held) if held else checkpoint",
        'return max(held, default="")',
        _GUARDS + "test_what_a_checkpoint_covers_needs_no_watermark",
    ),
    Mutation(
        "a verification takes what is logged for counted",
        "_backfill/verification.py",
        'elif change.sequence > held[ref].applied.get(shard, ""):',
        "elif False:",
        _GUARDS + "test_what_is_logged_but_not_counted_yet_is_no_drift",
    ),
    Mutation(
        "what comes after a cut is logged before what comes before it is counted",
        "_stream/deployments.py",
        "past = sum(cut <= change.sequence for cut in begun)",
        "past = 0",
        _GUARDS + "test_what_came_before_the_cut_is_counted_before_a_heartbeat_acknowledges_it",
    ),
    Mutation(
        "what has expired is taken for drift",
        "_stream/batch.py",
        "self._expired.note(folded.expired)",
        "pass",
        _GUARDS + "test_what_has_expired_is_not_told_as_drift",
    ),
    Mutation(
        "shards that begin while groups are read are not looked at",
        "_backfill/verification.py",
        "if known.issuperset(state.lineage.parents):",
        "if True:",
        _GUARDS + "test_what_came_through_a_shard_that_began_while_groups_were_read_is_no_drift",
    ),
    Mutation(
        "a table that is older than its stream is said to be whole",
        "_stream/deployments.py",
        "> created + _BEGINS_TOGETHER",
        "> created + timedelta(days=10**5)",
        "test_backfill.py::test_a_table_that_was_there_before_its_stream_is_not_whole",
    ),
    Mutation(
        "a verification compares what its scan takes for late",
        "_backfill/verification.py",
        "if number and name not in late}",
        "if number}",
        "test_backfill.py::test_what_a_scan_takes_for_late_is_no_drift",
    ),
    Mutation(
        "a verification goes on after another process has ended it",
        "_backfill/verification.py",
        "            if state.run not in seen.runs:\n",
        "            if False:\n",
        _GUARDS + "test_a_verification_that_another_process_has_ended_tells_nothing",
    ),
)
