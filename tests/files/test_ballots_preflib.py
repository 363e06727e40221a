"""Ballots in PrefLib files, of the present form and of the older one."""

import pytest

from witan.errors import BallotFileError
from witan.files.ballots import read_ballots

NEW = """# FILE NAME: 00001-00000001.toi
# TITLE: A small election
# DATA TYPE: toi
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 4
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: Ann: the elder
# ALTERNATIVE NAME 2: Bo
# ALTERNATIVE NAME 3: Cy
2: 1,{2,3}
1: 3,2
1: {1, 2, 3}
"""

OLD = "3\n1,Ann\n2,Bo\n3,Cy\n3,3,2\n2,1,{2,3}\n1,3,2,1\n"


def read(tmp_path, text, name="small.toi", **options):
    """Write this text, read it back: ballots and the problems as text without the folder."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    problems = []
    cast = list(read_ballots(path, on_problem=problems.append, **options))
    return cast, [str(problem).removeprefix(f"{tmp_path}/") for problem in problems]


def test_every_voter_is_a_ballot(tmp_path):
    """Counts become voters, braces ties, the title the session, the names the roster."""
    cast, problems = read(tmp_path, NEW)

    assert problems == []
    assert [one.reviewer for one in cast] == ["voter-1", "voter-2", "voter-3", "voter-4"]
    assert [one.groups for one in cast] == [
        (("Ann: the elder",), ("Bo", "Cy")),
        (("Ann: the elder",), ("Bo", "Cy")),
        (("Cy",), ("Bo",)),
        (("Ann: the elder", "Bo", "Cy"),),
    ]
    assert {one.session for one in cast} == {"A small election"}
    assert {one.kind for one in cast} == {"human"}
    assert {one.candidates for one in cast} == {("Ann: the elder", "Bo", "Cy")}


def test_older_form_is_read(tmp_path):
    """Names, then totals, then orders with the count first; the session is the file's name."""
    cast, problems = read(tmp_path, OLD, name="old.toc")

    assert problems == []
    assert [one.groups for one in cast] == [(("Ann",), ("Bo", "Cy"))] * 2 + [
        (("Cy",), ("Bo",), ("Ann",))
    ]
    assert {one.session for one in cast} == {"old"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1: 3,9", "field 'ranking' has '9', which is not the number of an alternative"),
        ("x: 3,2", "field 'count' is 'x'; expected a whole number"),
        ("1: 3,{2,1", "field 'ranking' is '3,{2,1'; expected an order such as 1,{2,3},4"),
    ],
)
def test_bad_line_is_reported_and_the_good_ones_count(tmp_path, line, said):
    """An unreadable line loses its own voters only."""
    cast, problems = read(tmp_path, NEW.replace("1: 3,2", line))

    assert len(cast) == 3
    assert problems == [f"small.toi:11: {said}"]


def test_missing_voters_are_reported(tmp_path):
    """A file with fewer voters than in its header is read with a warning."""
    cast, problems = read(tmp_path, NEW.replace("1: 3,2\n", ""))

    assert len(cast) == 3
    [problem] = problems
    assert all(fact in problem for fact in ("small.toi:5", "4 voters, the file has 3"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NEW.replace("TYPE: toi", "TYPE: wmd"), ":3: contains PrefLib data of type 'wmd'"),
        (NEW.replace("3: Cy", "3: Bo"), " gives the name 'Bo' to two alternatives"),
        ("# TITLE: t\n1: 1,2\n", ":2: names no alternatives before its first ranking"),
        ("3\n1,Ann\n2,Bo\n3,3,2\n", "where 'voters,sum,orders' is expected"),
        ("3\n1,Ann\nBo\n", ":3: has 'Bo' where 'number,name' is expected"),
    ],
)
def test_file_without_an_election_is_refused(tmp_path, text, said):
    """A header error stops the reading."""
    with pytest.raises(BallotFileError) as caught:
        read(tmp_path, text)

    assert said in str(caught.value)
