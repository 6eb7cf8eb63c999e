"""Admission: which events some declarations could not count, found before the events are accepted."""

from __future__ import annotations

from decimal import localcontext

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import EXACT


class Admission:
    """Refuses what the fold of these declarations would leave to quarantine; what it drops as late is no refusal."""

    def __init__(self, declarations: tuple[Declaration, ...]) -> None:
        self._plan = Plan(declarations)

    def refusal(self, item: Image, created: float) -> str | None:
        """Why an event's typed item, inserted at `created`, could not be counted; None if it could."""
        reasons = []
        with localcontext(EXACT):
            for source in self._plan.sources(item):
                for program in source.programs:
                    try:
                        program.contribute(item, created)
                    except UNFOLDABLE as error:
                        reasons.append(f"{program.layout.name}: {error}")
        return "; ".join(reasons) or None
