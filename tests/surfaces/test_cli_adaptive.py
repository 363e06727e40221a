"""``--spend adaptive``, black box: only as many reviewers as needed, also after a kill."""

import json
import signal
import subprocess
import sys
from collections import Counter

import httpx2
import pytest

from recorded import place_of_its_own
from scripts import grade_words, write_script
from served import served
from services import councils, write_config

NAMES = ("ann", "ben", "cat", "don", "eva", "fay", "gus")

AGREED = [grade_words(moraine=9, glacier=2)]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A history of this test's own, two texts, and no other state of the machine."""
    place = place_of_its_own(tmp_path, monkeypatch)
    (tmp_path / "good.md").write_text("It is the moraine.")
    (tmp_path / "bad.md").write_text("It is the glacier.")
    return place


def seat(folder, review_of):
    """The options that seat seven jurors with adaptive spending."""
    options = ["--spend", "adaptive"]
    for name in NAMES:
        path = write_script(folder / f"{name}.toml", review=review_of(name))
        options += ["--jury", f"script:{path}"]
    return options


def reviewed(record):
    """Reviewers in the order in which they were called."""
    return [x["seat"] for x in record["events"] if x["event"] == "review_started"]


def test_an_agreeing_jury_stops_at_the_minimum(witan, tmp_path):
    """The output states how many were enough, and nothing is missing."""
    options = seat(tmp_path, lambda _: AGREED)
    said = witan("judge", "good.md", "bad.md", *options)
    shown = witan("show", "last")
    record = witan("show", "last", "--json").json

    assert said.status == 0
    assert "3 of 7 reviewers were enough" in said.err
    assert reviewed(record) == ["ann", "ben", "cat"]
    assert (record["status"], record["missing"]) == ("complete", [])
    assert "not needed" in shown.out
    assert "jury: ann, ben, cat, don, eva, fay and gus" in shown.out  # not all of them judged


def test_a_split_jury_calls_every_reviewer(witan, tmp_path):
    gaps = dict(zip(NAMES, (3.0, 1.5, 1.0, 2.5, 1.0, 2.0, 2.5), strict=True))
    options = seat(tmp_path, lambda n: [grade_words(moraine=6 + gaps[n], glacier=6)])
    said = witan("judge", "good.md", "bad.md", *options, "--json")

    assert reviewed(said.json) == [*NAMES]


def test_a_plan_states_the_expected_number_of_reviews(witan, tmp_path):
    """It is between the minimum and all; no call is made."""
    options = seat(tmp_path, lambda _: AGREED)
    said = witan("judge", "good.md", "bad.md", *options, "--plan")

    assert "at most 7 calls" in said.out
    assert "of 7 reviews are expected" in said.out


def test_a_killed_session_resumes_adaptively(witan, tmp_path, place):
    """After kill -9 stored ballots count, and only as many others are requested as needed."""

    def review(name):
        return [grade_words(moraine=8, glacier=6)] if name < "d" else [{"hang": True}]

    options = [*seat(tmp_path, review), "--history", str(place)]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "witan", "judge", "good.md", "bad.md", *options, "--events"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    told = Counter()
    while told["review_started"] < 4 or told["ballot_cast"] < 3:
        told[json.loads(process.stdout.readline())["event"]] += 1
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    seat(tmp_path, lambda _: [grade_words(moraine=8, glacier=6)])
    resumed = witan("resume", "last")
    record = witan("show", "last", "--json").json
    cast = [x["seat"] for x in record["events"] if x["event"] == "ballot_cast"]

    assert resumed.status == 0
    assert cast[:3] == ["ann", "ben", "cat"]
    assert len(cast) == len({*cast}) < 7
    assert reviewed(record).count("ann") == 1
    assert record["status"] == "complete"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["good.md", "bad.md", "--spend", "some"], "'some'"),
        (["good.md"], "pass mark"),
        (["good.md", "bad.md", "--review-rounds", "2"], "review"),
    ],
)
def test_misuse_is_refused(witan, tmp_path, arguments, words):
    """The status is 2, and no call is made."""
    said = witan("judge", *seat(tmp_path, lambda _: AGREED), *arguments)

    assert said.status == 2
    assert words in said.err


def test_a_batch_stops_row_by_row(witan, tmp_path):
    """Each row ends once it is settled."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"text": "a moraine {n}"}}\n' for n in range(3)))
    options = [*seat(tmp_path, lambda _: AGREED), "--pass-mark", 4]
    said = witan("batch", rows, *options)
    results = [json.loads(line) for line in said.out.splitlines()]

    assert said.status == 0
    assert [each["decision"] for each in results] == ["passed"] * 3
    assert {len(each["verdict"]["reviewers"]) for each in results} == {3}


def test_adaptive_spending_is_an_option_over_http(tmp_path):
    """The record states why the reviews ended."""
    more = "\njury = " + json.dumps(
        [f"script:{write_script(tmp_path / f'{n}.toml', review=AGREED)}" for n in NAMES]
    )
    file = write_config(tmp_path, f"{more}\n")
    body = {"texts": {"a": "moraine", "b": "glacier"}, "options": {"spend": "adaptive"}}
    with (
        served(councils(file)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as client,
    ):
        record = client.post("/api/judge", params={"wait": 20}, json=body).json()
        wrong = client.post("/api/judge", json=body | {"options": {"spend": "some"}})

    [ending] = [x for x in record["events"] if x["event"] == "decided"]
    assert (ending["reason"], ending["leader"]) == ("settled", "a")
    assert len(ending["cancelled"]) == 4
    assert wrong.status_code == 422
