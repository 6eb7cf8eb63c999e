from __future__ import annotations

from pathlib import Path

import pytest

from demo.options import Options, parse_options


def test_without_arguments_traffic_is_generated() -> None:
    assert parse_options([]) == Options(log=None, duplicates=0.2, seed=1, report=None, keep=False)


def test_a_log_is_sent_as_it_is_unless_asked_otherwise(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.touch()

    assert parse_options(["--log", str(log)]).duplicates == 0
    assert parse_options(["--log", str(log), "--duplicates", "1"]).duplicates == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--log", "{tmp}/none.log"], "there is no file '{tmp}/none.log'"),
        (["--log", "{tmp}"], "'{tmp}' is a directory, not a log"),
        (["--duplicates", "1.1"], "invalid share '1.1': expected a number from 0 to 1, such as 0.2"),
        (["--duplicates", "-0.1"], "invalid share '-0.1': expected a number"),
        (["--duplicates", "nan"], "invalid share 'nan': expected a number"),
        (["--duplicates", "20%"], "invalid share '20%': expected a number"),
        (["--seed", "x"], "invalid seed 'x': expected a whole number"),
        (["--report", "{tmp}/none/r.json"], "there is no directory '{tmp}/none'"),
        (["--report", "{tmp}"], "'{tmp}' is not the name of a file"),
        (["--report", ""], "'' is not the name of a file"),
        (["--loud"], "unrecognized arguments: --loud"),
    ],
)
def test_a_wrong_argument_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options([argument.format(tmp=tmp_path) for argument in arguments])

    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert message.format(tmp=tmp_path) in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
