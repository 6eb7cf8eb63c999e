"""The page as one text: its data, style and script inline, so that it asks the network for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from simulation.replay.run import EVENTS, FAULTS, PAGES, STATUSES, Run
from simulation.replay.stories import BRANCH_EVERY, STORIES, Story
from simulation.replay.tape import KINDS, Texts

_FILES: Final = Path(__file__).parent / "page"


def recording() -> dict[str, Any]:
    """Record every story and its branches."""
    texts = Texts()
    stories = [recorded(story, texts) for story in STORIES]
    return {
        "pages": PAGES,
        "kinds": KINDS,
        "statuses": STATUSES,
        "events": EVENTS,
        "stories": stories,
        "texts": list(texts.numbers),
    }


def recorded(story: Story, texts: Texts, *, branched: bool = True) -> dict[str, Any]:
    """A story's steps and, by step and fault, what follows when that fault is injected after it."""
    base = Run(story.seed, story.faults, texts).play()
    if missing := [fault for fault in story.faults if not base.reached[fault]] or ["drift"] * (not base.twice.total()):
        raise AssertionError(f"seed {story.seed} no longer shows {', '.join(missing)}: choose another for {story.name}")
    branches: dict[str, list[dict[str, Any]]] = {}
    for step in range(BRANCH_EVERY, len(base.tape.frames) - 1, BRANCH_EVERY) if branched else ():
        for fault in FAULTS:
            run = Run(story.seed, story.faults, texts, (step, fault)).play()
            if run.injected:
                assert run.tape.states[: step + 1] == base.tape.states[: step + 1]
                branches[f"{step} {fault}"] = run.tape.frames[step + 1 :]
    return {
        "name": story.name,
        "about": story.about,
        "seed": story.seed,
        "frames": base.tape.frames,
        "branches": branches,
    }


def assembled(recording: dict[str, Any]) -> str:
    """The page that shows a recording."""
    data = json.dumps(recording, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {"style": "page.css", "script": "page.js"}
    text = (_FILES / "page.html").read_text()
    for name, file in parts.items():
        text = text.replace(f"/*{name}*/", (_FILES / file).read_text().strip())
    return text.replace("/*data*/", data)
