"""The safety mechanisms of tallies: how to switch each one off, and which test must notice."""

from __future__ import annotations

from typing import Final

from simulation.mechanisms import Mutation

_TALLY: Final = "test_tally.py::"
_INCREMENTS: Final = _TALLY + "test_increments_survive_a_redefinition"
_ERASED: Final = _TALLY + "test_verification_knows_of_erased_events_whose_counts_are_kept"
_BESIDE: Final = _TALLY + "test_an_erasure_beside_a_backfill_is_kept_once"

TALLY_MUTATIONS: Final = (
    Mutation(
        "an increment has no tally",
        "_writes/increments.py",
        "{**added, **tallied}",
        "added",
        _INCREMENTS,
    ),
    Mutation(
        "a reset has no tally",
        "_writes/increments.py",
        "for each in counted if each != SCORE]",
        "for each in () if each != SCORE]",
        _TALLY + "test_a_reset_survives_a_redefinition",
    ),
    Mutation(
        "verification compares tallies with sources",
        "_backfill/group_items.py",
        " - _number(item, TALLY_PREFIX + name)",
        "",
        _ERASED,
    ),
    Mutation(
        "an erasure is an expiry that leaves no tally",
        "_fold/fold.py",
        "program.on_erasure if is_erased else program.on_expiry",
        "program.on_expiry",
        _ERASED,
    ),
    Mutation(
        "an erasure beside a backfill is tallied and carried",
        "_fold/tallies.py",
        "            found += carry(group, numbers)\n",
        "            pass\n",
        _BESIDE,
    ),
    Mutation(
        "a deleted group takes back what was carried",
        "_fold/fold.py",
        'if source.carries and change.record.get("eventName") == "REMOVE":',
        "if False:",
        _TALLY + "test_dropping_the_old_generation_leaves_what_was_carried",
    ),
    Mutation(
        "a takeover ends the carry",
        "_declarations/effective.py",
        "carries = held.carries if held is not None else None",
        "carries = None",
        _TALLY + "test_an_increment_after_a_takeover_reaches_the_next_generation",
    ),
    Mutation(
        "a generation carries nothing",
        "_backfill/opening.py",
        "replace(before, carries=None) if type(before) is type(declaration) else None",
        "None",
        _INCREMENTS,
    ),
    Mutation(
        "tallies of what looks at a filled aggregate are not scanned",
        "_backfill/opening.py",
        " or declaration.carries is not None",
        "",
        _TALLY + "test_tallies_of_an_aggregate_over_another_survive_a_redefinition_of_both",
    ),
    Mutation(
        "a backfill opens while three generations are counted",
        "_backfill/backfill.py",
        "if not _is_mixed(*each[1:])",
        "",
        _TALLY + "test_a_backfill_waits_until_the_generation_before_the_last_is_not_counted_any_more",
    ),
    Mutation(
        "a run that opens takes the cut of another one, which lies ahead",
        "_backfill/backfill.py",
        "replace(era, deployment=deployment_id(part))",
        "Era(era.valid_from, deployment_id(part))",
        _TALLY + "test_a_run_whose_cut_lies_ahead_keeps_it_when_another_one_opens",
    ),
    Mutation(
        "a run goes on although another one has replaced what it carries",
        "_backfill/backfill.py",
        "or generation_number(declaration.name) == number",
        "or generation_number(declaration.name) >= number",
        _TALLY + "test_a_complete_backfill_voids_a_later_one_of_the_same_name",
    ),
)
