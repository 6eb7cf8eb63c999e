from __future__ import annotations

import gzip
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.examples.blog.access_log import MAX_LINE_BYTES, LogError, parse_line, read_log
from demo.examples.blog.traffic import View

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_COMBINED = '83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /a.png HTTP/1.1" 200 203023 "http://b.c/" "Mozilla/5.0"'
_BYTES = _COMBINED.encode()
_VIEW = View("/a.png", "2015-05-17T10:05:03+00:00", "83.149.9.216")

_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))
# As a server writes it: quotes and backslashes escaped.
_logged = _text.map(lambda text: text.replace("\\", "\\\\").replace('"', '\\"'))
_target = _logged.filter(lambda text: not text.rpartition(" ")[2].startswith("HTTP/"))
_client = st.one_of(
    st.ip_addresses().map(str), st.text(st.characters(categories=["L", "N", "S"]), min_size=1).filter(str.isprintable)
)
_zone = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_time = st.datetimes(datetime(1970, 1, 1), datetime(9998, 12, 31), timezones=_zone)  # noqa: DTZ001
_method = st.sampled_from(["GET", "HEAD", "POST", "M-SEARCH", "get", "*"])
_version = st.sampled_from(["", " HTTP/1.0", " HTTP/1.1", " HTTP/2", " HTTP/2.0", " HTTP/3"])
_tail = st.one_of(st.just(""), st.tuples(_logged, _logged).map(lambda two: f' "{two[0]}" "{two[1]}"'))


def _stamp(time: datetime) -> str:
    return f"{time.day:02}/{_MONTHS[time.month - 1]}/{time.year:04}:{time:%H:%M:%S %z}"


@given(_client, st.sampled_from(["-", "frank", "a b"]), _time, _method, _target, _version, _tail)
def test_what_was_logged_is_read_back(
    client: str, user: str, time: datetime, method: str, target: str, version: str, tail: str
) -> None:
    line = f'{client} - {user} [{_stamp(time)}] "{method} {target}{version}" 200 512{tail}'

    expected = time.replace(microsecond=0).astimezone(UTC).isoformat()
    assert parse_line(line) == View(target, expected, client)


@given(_text)
def test_any_line_is_read_or_refused(line: str) -> None:
    assert parse_line(line) is None


@given(st.integers(0, len(_COMBINED)), _text)
def test_a_line_broken_anywhere_is_read_or_refused(place: int, noise: str) -> None:
    view = parse_line(_COMBINED[:place] + noise)

    assert view is None or isinstance(view, View)


@pytest.mark.parametrize(
    ("request_line", "url"),
    [
        ("GET / HTTP/1.1", "/"),
        ("GET /a#b?c=%23&d=%0A HTTP/1.1", "/a#b?c=%23&d=%0A"),
        ("GET /with some spaces HTTP/1.1", "/with some spaces"),
        ("GET /no-version", "/no-version"),
        ("GET  HTTP/1.1", ""),
        ("GET ", ""),
        ("GET /x HTTP/1.1 HTTP/1.1", "/x HTTP/1.1"),
        (r"GET /q=\"a\" HTTP/1.1", r"/q=\"a\""),
        (r"GET /end\\ HTTP/1.1", r"/end\\"),
        ('GET /un"escaped" HTTP/1.1', '/un"escaped"'),
        ("GET /🐍 HTTP/2", "/🐍"),
        (f"GET /{'x' * 3000} HTTP/1.1", f"/{'x' * 3000}"),
        ("OPTIONS * HTTP/1.0", "*"),
        ("CONNECT [::1]:443 HTTP/1.1", "[::1]:443"),
    ],
)
def test_the_url_is_the_target_as_logged(request_line: str, url: str) -> None:
    view = parse_line(f'::1 - - [17/May/2015:10:05:03 +0000] "{request_line}" 200 - "-" "-"')

    assert view == View(url, "2015-05-17T10:05:03+00:00", "::1")


def test_a_line_whose_end_was_cut_off_still_counts() -> None:
    assert parse_line(_COMBINED.removesuffix('"')) == parse_line(_COMBINED) == _VIEW


def test_one_instant_in_two_offsets_is_one_time() -> None:
    line = '::1 - - [{}] "GET / HTTP/1.1" 200 5'

    assert parse_line(line.format("01/Mar/2020:00:30:00 +0100")) == parse_line(
        line.format("29/Feb/2020:18:30:00 -0500")
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "\0",
        '::1 - - [17/May/2015:10:05:03 +0000] "-" 408 -',
        '::1 - - [17/May/2015:10:05:03 +0000] "GET" 400 0',
        r'::1 - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01 \x00" 400 0',
        '::1 - - [31/Feb/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5',
        '::1 - - [17/Mai/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5',
        '::1 - - [17/May/2015:24:05:03 +0000] "GET / HTTP/1.1" 200 5',
        '::1 - - [17/May/2015:10:05:03 +9900] "GET / HTTP/1.1" 200 5',
        '::1 - - [17/May/2015:10:05:03 +0060] "GET / HTTP/1.1" 200 5',
        '::1 - - [01/Jan/0001:00:00:00 +0100] "GET / HTTP/1.1" 200 5',
        '::1 - - [31/Dec/9999:23:59:59 +0000] "GET / HTTP/1.1" 200 5',
        '::1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200',
        '::1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1',
        pytest.param('::1 - - [17/May/2015:10:05:03 +0000] "' + 'GET " 200 ' * 5_000, id="hostile, takes no time"),
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    assert parse_line(line) is None


@pytest.mark.parametrize("name", ["access.log", "access.log.gz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_gzip_is_told_by_content(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack(f"{_COMBINED}\r\ngarbage\n\n{_COMBINED}".encode()))

    assert list(read_log(path)) == [_VIEW, None, None, _VIEW]


@pytest.mark.parametrize(
    ("content", "views"),
    [
        (b"", []),
        (gzip.compress(b"", mtime=0), []),
        (b"\xef\xbb\xbf" + _BYTES, [_VIEW]),
        (
            _BYTES.replace(b"/a.png", b"/\xff\xc3\xa9\xed\xa0\x80"),
            [_VIEW._replace(url=r"/\xffé\xed\xa0\x80")],
        ),
        (b"x" * (MAX_LINE_BYTES * 3) + b"\n" + _BYTES + b"\n", [None, _VIEW]),
    ],
    ids=["empty", "empty gzip", "byte order mark", "bytes that are no text are escaped", "endless line"],
)
def test_a_file_of_any_bytes_is_read(tmp_path: Path, content: bytes, views: list[View | None]) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(content)

    assert list(read_log(path)) == views


def test_the_log_is_read_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.writelines(f"{_COMBINED}\n" for _ in range(50_000))

    tracemalloc.start()
    lines = sum(1 for _ in read_log(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (lines, peak < 1_000_000) == (50_000, True)


@pytest.mark.parametrize("spoil", [lambda data: data[:-9], lambda data: data[:20] + b"\0\0\0\0" + data[24:]])
def test_a_damaged_gzip_is_an_error(tmp_path: Path, spoil: object) -> None:
    path = tmp_path / "access.log.gz"
    assert callable(spoil)
    path.write_bytes(spoil(gzip.compress((_COMBINED + "\n").encode() * 100)))

    with pytest.raises(LogError, match=r"cannot read the log .*access\.log\.gz: "):
        list(read_log(path))
