"""Makes the pictures of the pages, with the margins and portions of the code.

Run: ``PYTHONPATH=lambdas python docs/figures/pictures.py``
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Final

from drawing import INNER, LEFT, RIGHT, arrow, box, picture, rule, text, write

from dynamodb_counters import Aggregate, Event, Quota
from dynamodb_counters._assumptions import CLOCKS, FRESH, RUN_OPEN_AFTER, SETTLED_AFTER
from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.layouts import Page, PageLayout
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._tiers import MINUTE


def redelivery() -> str:
    """Draw a batch that is delivered twice, and then with more records."""
    shapes = [text(LEFT, 28, "a shard of the stream", "faint"), text(326, 28, "the item of one page", "faint")]
    for index, record in enumerate(range(90, 96)):
        shapes.append(box(LEFT + 46 * index, 40, 42, 56, "side" if record in {91, 92} else "plain", str(record)))
    shapes += [_item(40, 5, 90), text(LEFT, 122, "Records 91 and 92 come as a batch: two views of the page.")]
    steps = (
        ("1  Delivered and written. Then the function dies.", 91, (7, 92), "good", "90 is before 91: counted"),
        ("2  Delivered again.", 91, (7, 92), "bad", "refused: watermark 92 is not before 91"),
        (
            "3  Delivered with 93 and 94: refused, folded from after 92.",
            93,
            (9, 94),
            "good",
            "92 is before 93: counted",
        ),
    )
    for top, (what, first, item, kind, status) in zip(count(168, 132), steps, strict=False):
        shapes += [
            text(LEFT, top, what),
            box(
                LEFT, top + 12, 250, 56, "plain", f"add 2, watermark {item[1]},", f"if it is before {first}", bold=False
            ),
            arrow((LEFT + 252, top + 40), (322, top + 40)),
            _item(top + 12, *item),
            text(LEFT, top + 92, status, f"b {kind}"),
        ]
    label = (
        "A batch of records 91 and 92 meets an item with watermark 90 and is counted: the watermark becomes 92. "
        "Delivered again, it is refused: watermark 92 is not before 91. "
        "With two more records, those after 92 are counted."
    )
    return picture(label, 540, shapes)


def _item(top: int, views: int, watermark: int) -> str:
    return box(326, top, RIGHT - 326, 56, "table", f"views {views}", f"watermark {watermark}")


def change() -> str:
    """Draw a changed definition under a name of its own, from its deployment to the end of the old one."""
    rows = (
        ("In use", "views counts and is read."),
        ("views_v2 is deployed", "It waits; views counts on."),
        ("counters backfill views_v2", f"{RUN_OPEN_AFTER // MINUTE} minutes later, both count."),
        ("Complete", "Readers may use either."),
        ("views is undeclared", "It counts on all the same."),
        ("counters drop views", f"{(2 * CLOCKS + FRESH + SETTLED_AFTER) // MINUTE} minutes later, its items go."),
    )
    bars = (
        (272, 0, 6, "table", "counts"),
        (350, 1, 2, "none", "waits"),
        (350, 2, 3, "side", "fills"),
        (350, 3, 6, "good", "counts"),
        (428, 0, 4, "table", "views"),
        (428, 4, 6, "good", "_v2"),
    )
    heads = ((303, "views"), (381, "views_v2"), (459, "read"))
    shapes = [text(at, 28, name, "b", anchor="middle") for at, name in heads]
    for top, (what, so) in zip(count(44, 66), rows, strict=False):
        shapes += [rule(LEFT, top, RIGHT, top), text(LEFT, top + 26, what, "b"), text(LEFT, top + 48, so, "faint")]
    shapes += [box(at, 44 + 66 * start, 62, 66 * (end - start), *looks) for at, start, end, *looks in bars]
    label = (
        "A timeline: views counts and is read throughout. "
        "views_v2 is deployed, waits, is filled by a backfill, and is read once it is complete. "
        "Then views is dropped."
    )
    return picture(label, 444, shapes)


def backfill() -> str:
    """Draw the steps of a backfill, and meanwhile the stream, the log and the readers."""
    opened, since, scan, drain, add, complete = marks = (LEFT, 100, 180, 274, 364, 446)
    names = ("open", "S", f"S + {CLOCKS // MINUTE} min", "scanned", "drained", "done")
    rows = (
        ("Open, wait: every process learns of S.", (opened, scan, "plain")),
        ("Stream: records from S on are counted.", (since, RIGHT, "good")),
        ("Log: what each item that changes had contributed.", (since, add, "side")),
        ("Scan: what each item contributes.", (scan, drain, "table")),
        ("Drain: every shard logs something newer than the scan.", (drain, add, "side")),
        ("Add once per group: by the log, else by the scan.", (add, complete, "good")),
        ("Complete: one write, and readers know.", (opened, complete, "plain"), (complete, RIGHT, "good")),
    )
    shapes = [text(LEFT, 28, names[0], "b")]
    shapes += [text(at, 28, name, "b", anchor="middle") for at, name in zip(marks[1:], names[1:], strict=True)]
    for top, (what, *bars) in zip(count(40, 60), rows, strict=False):
        shapes += [text(LEFT, top + 22, what), *(rule(at, top + 28, at, top + 56) for at in marks)]
        shapes += [box(start, top + 32, end - start, 20, kind) for start, end, kind in bars]
    label = (
        "A timeline: from the moment S on, the stream counts records and logs what changed items had contributed. "
        "A scan reads what each item contributes. "
        "Each group gets its baseline once, and one write lets readers know."
    )
    return picture(label, 466, shapes)


def quota() -> str:
    """Portions of a quota among three processes: a busy one, one that ends, one that dies."""
    calls = Quota("calls", limit=10_000, per="day", by="customer")
    sizes = [min(2**power, calls._portion_size) for power in range(8)]
    busy, ends, dies = sum(sizes), sum(sizes[:3]), sum(sizes[:4])
    reserved = f"reserved: {busy} + {ends} - 2 + {dies} = {busy + ends - 2 + dies}"
    rule_of_it = f"A portion is added only within the limit, {calls.limit:,}."
    columns = (
        ("a busy process", (*sizes[:3], "…", *sizes[-2:]), f"{busy - 37} granted", "37 left", f"+ {sizes[-1]}", "good"),
        ("one that ends", sizes[:3], f"{ends - 2} granted", "2 released", "- 2", "plain"),
        ("one that dies", sizes[:4], "some granted", f"{dies} stay used", "", "bad"),
    )
    shapes = [box(LEFT, 10, INNER, 66, "table", reserved, rule_of_it)]
    for left, (name, portions, granted, rest, moved, kind) in zip((LEFT, 174, 338), columns, strict=True):
        shapes.append(box(left, 128, 152, 112, kind, name, " ".join(map(str, portions)), granted, rest))
        if moved:
            shapes += [arrow((left + 76, 126), (left + 76, 80)), text(left + 86, 108, moved)]
    shapes.append(text(LEFT, 268, "A call takes one of what is left: no request.", "faint"))
    label = (
        "The item of a day has one number, reserved, which portions raise within the limit. "
        "A busy process takes larger and larger portions, one that ends gives back what is left, and what a dead "
        "one holds stays used."
    )
    return picture(label, 282, shapes)


def correction() -> str:
    """Draw a sale that moves from one shop to another and is no large one any more."""
    rows = (
        ("shop north", ("sales - 1", "cents - 12,000"), (), ("sales 0", "cents 0")),
        ("shop south", (), ("sales + 1", "cents + 1,200"), ("sales 1", "cents 1,200")),
        ("large", ("sales - 1",), (), ("sales 0",)),
    )
    shapes = [
        text(LEFT, 54, "one record", "b"),
        box(112, 10, 130, 78, "bad", "old image", "north", "12,000 cents"),
        box(250, 10, 130, 78, "good", "new image", "south", "1,200 cents"),
        text(396, 54, "counts", "b"),
    ]
    for top, (group, old, new, then) in zip(count(102, 66), rows, strict=False):
        shapes += [rule(LEFT, top, RIGHT, top), text(LEFT, top + 26, group, "b")]
        for left, words, looks in ((177, old, "bad"), (315, new, "good")):
            shapes += [text(left, top + 26 + 22 * at, it, looks, anchor="middle") for at, it in enumerate(words)]
        shapes += [text(396, top + 26 + 22 * at, it) for at, it in enumerate(then)]
    label = (
        "A record has the old and the new image of a sale that moved from north to south and is no large one any more. "
        "Each group subtracts what the old image adds and adds what the new one adds."
    )
    return picture(label, 286, shapes)


def tenants() -> str:
    """Where tenants are kept apart, and where they are not."""
    shapes = [
        box(LEFT, 10, 220, 52, "plain", "a caller", "claim: acme"),
        box(260, 10, 230, 52, "plain", "another caller", "claim: zeta"),
        arrow((100, 64), (100, 124)),
        arrow((276, 64), (276, 124)),
        text(110, 100, "customer=acme"),
        text(286, 100, "customer=acme: 403", "b bad"),
        box(LEFT, 128, INNER, 56, "side", "CounterApi, EventIngest", "customer must be the claim"),
        box(LEFT, 236, 340, 106, "table"),
        arrow((100, 186), (100, 246)),
        arrow((260, 186), (260, 246)),
        box(22, 250, 152, 54, "good", "job#acme", "events, groups"),
        box(186, 250, 152, 54, "good", "job#zeta", "events, groups"),
        text(22, 330, "one table"),
        box(396, 236, RIGHT - 396, 106, "bad", "code", "with a", "grant"),
        arrow((394, 289), (354, 289)),
        text(LEFT, 372, "A grant reaches the whole table, and all callers share", "faint"),
        text(LEFT, 394, "the throttle of the API.", "faint"),
    ]
    label = (
        "Callers reach the API, which lets each ask for the customer of its claim alone and answers 403 to another. "
        "Behind it lie the keys of all customers in one table, which code with a grant reaches past the claims."
    )
    return picture(label, 408, shapes)


def pages() -> str:
    """Draw groups as items, the same in a page, and the page after its split."""
    views = Aggregate("views", Event("view", key=("url", "time")), by="url", pages=True)
    layout, watermark = PageLayout(views), "watermark 92"
    counts = {"/": 7, "/a": 3, "/b": 1, "/d": 9}
    numbers = {"=" + url: {"N": str(number)} for url, number in counts.items()}
    page = {**typed_key(layout.key(Page(views.pk))), **numbers}
    shapes = [text(LEFT, 26, "an item per group"), text(RIGHT, 26, f"{len(counts)} write units", "b bad", anchor="end")]
    for index, (url, number) in enumerate(counts.items()):
        shapes.append(box(LEFT + 121 * index, 38, 117, 78, "plain", url, f"views {number}", watermark))
    shapes += [text(LEFT, 150, "a page"), text(RIGHT, 150, "1 write unit", "b good", anchor="end")]
    shapes.append(box(LEFT, 162, INNER, 78, "table", *_page(page), watermark))
    shapes += [
        text(LEFT, 276, "Too large: one transaction moves half of its groups, by the"),
        text(LEFT, 298, "first bit of their hash, and copies the watermark."),
    ]
    for left, half in zip((LEFT, 256), layout.halves(page), strict=True):
        shapes += [box(left, 314, 234, 78, "good", *_page(half), watermark)]
    label = (
        "Four groups as four items, each with a watermark, cost four write units. In one page, with one watermark, "
        "they cost one. A page that has become too large splits: half of the groups move to a new page, with a copy of "
        "the watermark."
    )
    return picture(label, 404, shapes)


def _page(image: Image) -> tuple[str, str]:
    return image["sk"]["S"], ",  ".join(f"{name} {image[name]['N']}" for name in image if name.startswith("="))


_PICTURES: Final = {
    "redelivery": redelivery,
    "change": change,
    "backfill": backfill,
    "quota": quota,
    "correction": correction,
    "tenants": tenants,
    "pages": pages,
}

if __name__ == "__main__":
    write({Path(__file__).with_name(f"{name}.svg"): draw() for name, draw in _PICTURES.items()})
