"""``witan estimate``, its route and its page, black box."""

import httpx2
import pytest

from desks import desk
from lessons import lessons
from markup import parsed
from served import served
from services import councils, write_config
from witan import Ballot, write_ballots


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Five models judge forty sessions, and a person twenty of them."""
    file = tmp_path_factory.mktemp("lessons") / "lessons.jsonl"
    write_ballots([b for one in lessons(40, people=20) for b in one.ballots], file)
    return file


def test_the_report_names_all_three_numbers(witan, path):
    """The corrected one leads; its neighbours are the jury's and people's."""
    said = witan("estimate", path)

    assert said.status == 0
    assert said.lines[0] == "how good are the systems? · 40 sessions · people's votes on 20"
    assert said.lines[1].startswith("Corrected by people's votes, ")
    for column in ("corrected", "jury alone", "people alone", "20 of 40"):
        assert column in said.out


def test_all_surfaces_say_the_same(witan, path, tmp_path):
    """The route returns the command's JSON; the page shows the report below its form."""
    said = witan("estimate", path, "--json").json
    with served(councils(write_config(tmp_path))) as server:
        sent = httpx2.post(
            f"{server.url}/api/estimate", json={"ballots": path.read_text()}, timeout=60
        )
    with (
        desk(tmp_path / "desk") as server,
        httpx2.Client(base_url=server.url, timeout=60) as browser,
    ):
        page = browser.post("/estimate", data={"ballots": path.read_text()}, timeout=60)

    assert sent.json() == said
    assert parsed(page.text).one("h1").text.startswith("Corrected by people's votes")
    assert (said["sessions"], said["people_sessions"], len(said["differences"])) == (40, 20, 10)


def test_systems_with_texts_of_few_questions_have_no_estimate(witan, tmp_path):
    """The report says what is missing, in place of a best system."""
    file = tmp_path / "texts.jsonl"
    write_ballots(
        [
            Ballot(
                "jury",
                session=f"{system} {n}",
                grades={system: 5 + n % 4},
                question=f"{system}{n // 2}?",
            )
            for system in ("x", "y")
            for n in range(6)
        ],
        file,
    )

    said = witan("estimate", file)

    assert said.lines[1] == "No mean grade is estimated: not enough data: 3 questions, 5 needed."


@pytest.mark.parametrize(
    ("people", "reason"),
    [
        (0, "Without people's votes the jury cannot be corrected"),
        (2, "The jury cannot be corrected: not enough data: "),
    ],
)
def test_one_sentence_says_why_nothing_is_corrected(witan, tmp_path, people, reason):
    """Tables have no column in which every line is unknown."""
    file = tmp_path / "lessons.jsonl"
    write_ballots([b for one in lessons(40, people=people) for b in one.ballots], file)

    said = witan("estimate", file)

    assert said.out.count(reason) == 1
    assert "few sessions" not in said.out
    assert not [line for line in said.lines if {"corrected", "alone"} <= {*line.split()[:3]}]


def test_without_people_the_panel_is_modelled(witan, tmp_path):
    """Pass rates with and without shared error stand beside the jury's, the assumption below."""
    file = tmp_path / "panel.jsonl"
    write_ballots([b for one in lessons(40) for b in one.ballots], file)

    said = witan("estimate", file, "--pass-mark", "7")
    panel = witan("estimate", file, "--pass-mark", "7", "--json").json["panel"]

    assert "Allowing for a shared error of up to 0.3, it is" in said.out
    for word in ("shared error", "Dawid–Skene", "jury alone", "sensitivity", "independent given"):
        assert word in said.out
    assert (len(panel["rates"]), len(panel["reviewers"]), panel["why"]) == (5, 5, None)


def test_a_panel_too_small_says_so(witan, tmp_path):
    """Two reviewers do not tell whose error a difference is."""
    file = tmp_path / "pair.jsonl"
    cast = [b for one in lessons(40) for b in one.ballots]
    write_ballots([b for b in cast if b.reviewer in {"test:ada", "test:bo"}], file)

    said = witan("estimate", file, "--pass-mark", "7")

    assert said.status == 0
    assert "No estimate: 0 texts have grades of 3 reviewers; 30 are needed." in said.out
    assert "Allowing" not in said.out


def test_too_few_sessions_are_refused(witan, tmp_path):
    """With the status of every count without ballots enough."""
    file = tmp_path / "few.jsonl"
    write_ballots([b for one in lessons(3) for b in one.ballots], file)

    refused = witan("estimate", file)

    assert refused.status == 3
    assert "and none here has them in more than 3" in " ".join(refused.err.split())
    assert "in 5 sessions" in refused.err
