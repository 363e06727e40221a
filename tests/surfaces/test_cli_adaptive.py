"""``--spend adaptive``, black box: no more reviewers than a question takes, killed or not."""

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
    """A history of the test's own, two texts, and no other trace of the machine."""
    place = place_of_its_own(tmp_path, monkeypatch)
    (tmp_path / "good.md").write_text("It is the moraine.")
    (tmp_path / "bad.md").write_text("It is the glacier.")
    return place


def seat(folder, review_of):
    """The options that seat seven jurors, who spend adaptively."""
    options = ["--spend", "adaptive"]
    for name in NAMES:
        path = write_script(folder / f"{name}.toml", review=review_of(name))
        options += ["--jury", f"script:{path}"]
    return options


def reviewed(record):
    """Who was asked for a review, in order."""
    return [x["seat"] for x in record["events"] if x["event"] == "review_started"]


def test_a_jury_of_one_mind_stops_at_the_fewest(witan, tmp_path):
    """What it says names how many were enough, and nothing is missing."""
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


def test_a_split_jury_is_asked_to_the_end(witan, tmp_path):
    """As long as the others may settle it."""
    gaps = dict(zip(NAMES, (3.0, 1.5, 1.0, 2.5, 1.0, 2.0, 2.5), strict=True))
    options = seat(tmp_path, lambda n: [grade_words(moraine=6 + gaps[n], glacier=6)])
    said = witan("judge", "good.md", "bad.md", *options, "--json")

    assert reviewed(said.json) == [*NAMES]


def test_a_plan_says_how_many_reviews_to_expect(witan, tmp_path):
    """Between the fewest and all; nobody is called."""
    options = seat(tmp_path, lambda _: AGREED)
    said = witan("judge", "good.md", "bad.md", *options, "--plan")

    assert "at most 7 calls" in said.out
    assert "of 7 reviews are expected" in said.out


def test_killed_it_goes_on_adaptively(witan, tmp_path, place):
    """After kill -9 the ballots that came in stand, and no more are asked for than are needed."""

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
def test_misuse_is_named(witan, tmp_path, arguments, words):
    """With status 2 and without a call."""
    said = witan("judge", *seat(tmp_path, lambda _: AGREED), *arguments)

    assert said.status == 2
    assert words in said.err


def test_a_batch_spends_row_by_row(witan, tmp_path):
    """Each row ends once it is settled."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"text": "a moraine {n}"}}\n' for n in range(3)))
    options = [*seat(tmp_path, lambda _: AGREED), "--pass-mark", 4]
    said = witan("batch", rows, *options)
    results = [json.loads(line) for line in said.out.splitlines()]

    assert said.status == 0
    assert [each["decision"] for each in results] == ["passed"] * 3
    assert {len(each["verdict"]["reviewers"]) for each in results} == {3}


def test_a_client_asks_for_it_over_http(tmp_path):
    """By the same word among its options; the record says what ended the reviews."""
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
