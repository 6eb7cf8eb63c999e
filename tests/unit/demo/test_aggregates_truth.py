from __future__ import annotations

from demo.aggregates_truth import answers, leaderboard_truth, pages_truth, remaining
from demo.events import Course, Page, Submission, Visit


def _found(player: str, count: int) -> list[Submission]:
    return [Submission(player, f"p{number}") for number in range(count)]


def test_what_is_withdrawn_is_gone_until_it_comes_again() -> None:
    course = Course(["a", "b", "a", "c"], ["a", "b"], ["b"])

    assert remaining(course) == {"b", "c"}
    assert answers(course) == {"accepted": 4, "duplicate": 1, "withdrawn": 2}


def test_twelve_paths_of_a_player_count() -> None:
    truth = leaderboard_truth(Course([*_found("ann", 14), *_found("bob", 12), *_found("cyd", 1), *_found("bob", 3)]))

    assert truth.players == {"ann": 14, "bob": 12, "cyd": 1}
    assert truth.total == 25
    assert truth.by_paths == {str(paths): {1: 1, 12: 2}.get(paths, 0) for paths in range(1, 13)}
    assert truth.best(2) == [14, 12]


def test_a_player_without_paths_is_no_longer_active() -> None:
    truth = leaderboard_truth(Course([*_found("ann", 2), *_found("bob", 1)], _found("ann", 2)))

    assert truth.players == {"ann": 0, "bob": 1}
    assert (truth.active, truth.total, truth.best(10)) == (1, 1, [1])


def test_a_user_counts_once_a_page_and_once_in_all() -> None:
    visits = [Visit("/a", "u"), Visit("/a", "v"), Visit("/b", "u"), Visit("/a", "u"), Visit("/b", "w")]

    truth = pages_truth(Course([Page("/a"), Page("/b"), Page("/c")], [Page("/c")]), Course(visits, visits[-1:]))

    assert (truth.pages, truth.views, truth.visitors) == (2, {"/a": 2, "/b": 1}, 2)


def test_nothing_is_nothing() -> None:
    board, pages = leaderboard_truth(Course()), pages_truth(Course(), Course())

    assert (board.players, board.active, board.total, set(board.by_paths.values())) == ({}, 0, 0, {0})
    assert (pages.pages, pages.views, pages.visitors) == (0, {}, 0)
