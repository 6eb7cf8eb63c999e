"""300 views of 20 pages by 80 users; a page and all views of three users are deleted, one of whom returns."""

from __future__ import annotations

from collections import Counter

from demo.example import Example
from demo.options import Setup
from demo.sending import Deliveries, with_duplicates


def play(setup: Setup) -> Example:
    rng, duplicates = setup.rng("pages"), setup.options.duplicates
    names = [f"page-{rank:02}" for rank in range(1, 21)]
    popular = rng.choices(names, [1 / rank for rank in range(1, 21)], k=300)
    views = [{"page": page, "user": f"user-{rng.randrange(80):02}"} for page in popular]
    forgotten = list(dict.fromkeys(view["user"] for view in views))[:3]
    retracted = [view for at, view in enumerate(views) if view["user"] in forgotten and view not in views[:at]]
    visits = Deliveries(with_duplicates(rng, views, duplicates), retracted, retracted[:1])
    pages = Deliveries(with_duplicates(rng, [{"page": name} for name in names], duplicates), [{"page": names[-1]}])
    counts = Counter(view["page"] for view in visits.remaining())
    truth = {
        "views": {name: counts[name] for name in names},
        "pages": {"": len(pages.remaining())},
        "visitors": {"": len({view["user"] for view in visits.remaining()})},
        "total": {"": counts.total()},
    }
    return Example(name="pages", now=setup.now, events={"page": pages, "page_view": visits}, truth=truth)
