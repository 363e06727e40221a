"""A real data set judged in 4,000 calls, killed twice, resumed, corrected by people, and read.

The judges of `../shared/data/prd_vicuna80` judged every pair of answers in both orders. A server on
loopback repeats what each of them said of the pair that it is shown.
"""

import csv
import json
import os
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from handlers import QuietHandler, run_handler
from notebooks import execute, notebook_of
from pages import ROOT
from processes import run_program, run_python, run_witan
from scripts import write_rows
from witan.files import read_ballots

DATA = ROOT.parent / "shared" / "data" / "prd_vicuna80"

PROMPTFOO = Path(os.environ.get("TEST_PROMPTFOO", "")) / "node_modules" / ".bin" / "promptfoo"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not DATA.is_dir(),
        reason="the real judges are not beside this checkout (../shared/data/prd_vicuna80)",
    ),
]

JUDGES = ("bard", "claude", "gpt35", "gpt4", "vicuna-13b")

RUBRIC = """
name = "preference"

[[criteria]]
name = "preference"
weight = 1
description = "10 for the better answer, 1 for the other; 5.5 for both if neither is better."
"""

GRADES = {"first": (10, 1), "second": (1, 10), "tie": (5.5, 5.5)}

AT_ONCE = 4
"""Rows under way at a time, of ten calls each."""

ANSWER = re.compile(r"<<<ANSWER (\w+) (\w+)>>>\n(.*?)\n<<<END ANSWER \1 \2>>>", re.DOTALL)


@dataclass(slots=True)
class Recorded:
    """The questions, the answers, and what judges and people said of every pair."""

    questions: dict[str, str] = field(default_factory=dict)
    answers: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    choices: dict[tuple[str, ...], str] = field(default_factory=dict)
    people: dict[tuple[str, str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def rows(self, voted: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """A row for each pair; those whose names are given come with people's votes."""
        rows = []
        for prompt, question in self.questions.items():
            for pair in combinations(sorted(self.answers[prompt]), 2):
                name = f"{prompt}/{'-'.join(pair)}"
                texts = {model: self.answers[prompt][model] for model in pair}
                row = {"id": name, "question": question, "texts": texts}
                rows.append(row | ({"votes": self.people[prompt, *pair]} if name in voted else {}))
        return rows

    def share_of_people(self, model: str) -> float:
        """The mean over pairs of the share of votes that a model has; a tie counts half."""
        shares = []
        for (_, *pair), votes in self.people.items():
            if model in pair:
                shares.append(sum({model: 1.0, "tie": 0.5}.get(v, 0.0) for v in votes) / len(votes))
        return sum(shares) / len(shares)


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    """The files, where they lie."""
    known = Recorded()
    for line in (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        known.questions[str(one["prompt_id"])] = one["text"]
    for line in (DATA / "responses.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        known.answers[str(one["prompt_id"])][one["model"]] = one["text"]
    with (DATA / "pairwise.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            prompt, first, second = row["prompt_id"], row["first"], row["second"]
            if row["judge_kind"] == "llm":
                known.choices[row["judge"], prompt, first, second] = row["outcome"]
            else:
                pair = (prompt, *sorted((first, second)))
                known.people[pair].append(row.get(row["outcome"], "tie"))
    return known


@dataclass(slots=True)
class Judges:
    """The server in which the recorded judges sit, and every call that it answered."""

    recorded: Recorded
    url: str = ""
    calls: list[tuple[str, ...]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def reply(self, body: dict[str, Any]) -> str:
        """Grade two answers by the choice of this judge between them, in this order."""
        shown = body["messages"][-1]["content"]
        (first, _, one), (second, _, other) = ANSWER.findall(shown)
        prompt = next(
            prompt
            for prompt, answers in self.recorded.answers.items()
            if {one.strip(), other.strip()} <= {text.strip() for text in answers.values()}
            and self.recorded.questions[prompt] in shown
        )
        models = {text.strip(): model for model, text in self.recorded.answers[prompt].items()}
        call = (body["model"], prompt, models[one.strip()], models[other.strip()])
        with self.lock:
            self.calls.append(call)
        grades = GRADES[self.recorded.choices[call]]
        order = {"first": [[first], [second]], "second": [[second], [first]]}
        review = {
            "notes": "As recorded.",
            "grades": {
                label: {"preference": grade}
                for label, grade in zip((first, second), grades, strict=True)
            },
            "ranking": order.get(self.recorded.choices[call], [[first, second]]),
        }
        return json.dumps(review)


@contextmanager
def serve(judges: Judges) -> Iterator[Judges]:
    """Serve judges in OpenAI's protocol at a port of this machine."""

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            message = {"role": "assistant", "content": judges.reply(self.read_json())}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
            whole = {"id": "x", "object": "chat.completion", "created": 1, "choices": [choice]}
            self.reply(200, {**whole, "usage": usage})

        def handle(self) -> None:
            # The batch is killed while it waits for replies.
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

    with run_handler(Handler) as url:
        judges.url = f"{url}/v1"
        yield judges


def call_witan(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return run_witan(*arguments, timeout=600)


@dataclass(frozen=True, slots=True)
class Night:
    """What a night of judging left, and what was counted in the morning."""

    folder: Path
    killed_after: tuple[int, ...]
    n_calls: int
    results: list[dict[str, Any]]
    report: dict[str, Any]
    n_calls_for_report: int

    @property
    def history(self) -> Path:
        """Its history."""
        return self.folder / "history.sqlite"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, recorded: Recorded) -> Iterator[Night]:
    """Judge all pairs in both orders, with two kills; then add people's votes on a quarter."""
    folder = tmp_path_factory.mktemp("night")
    (folder / "preference.toml").write_text(RUBRIC, encoding="utf-8")
    names = [row["id"] for row in recorded.rows()]
    voted = frozenset(random.Random(7).sample(names, len(names) // 4))  # noqa: S311 - a draw
    rows = write_rows(folder / "pairs.jsonl", recorded.rows())
    with serve(Judges(recorded)) as judges:
        seats = []
        for name in JUDGES:
            seats += ["--jury", f"judge-{name}={judges.url}#{name}"]
        options = [
            *seats, "--mirrored", "--rubric", folder / "preference.toml", "--concurrency", AT_ONCE,
            "--history", folder / "history.sqlite",
        ]  # fmt: skip
        killed_after = []
        for n_rows in (60, 120):
            command = [sys.executable, "-m", "witan", "batch", rows, *options]
            with subprocess.Popen(  # noqa: S603 - our own interpreter
                [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as process:
                assert process.stdout is not None
                for _ in range(n_rows):
                    assert process.stdout.readline()
                process.kill()
            killed_after.append(len(judges.calls))
        done = call_witan("batch", rows, *options, "-o", folder / "verdicts.jsonl")
        assert done.returncode == 0, done.stderr
        n_calls = len(judges.calls)
        rows = write_rows(rows, recorded.rows(voted))
        morning = call_witan("batch", rows, *options, "-o", folder / "again.jsonl", "--json")
        assert morning.returncode == 0, morning.stderr
        results = (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
        yield Night(
            folder,
            tuple(killed_after),
            n_calls,
            [json.loads(line) for line in results],
            json.loads(morning.stdout),
            len(judges.calls) - n_calls,
        )


def test_two_kills_lose_no_row_and_repeat_only_calls_under_way(night):
    """Each pair has one session, complete, of five judges and both orders."""
    assert 600 < night.killed_after[0] < night.killed_after[1] < night.n_calls
    assert len({each["session"] for each in night.results}) == len(night.results) == 400
    assert {each["status"] for each in night.results} == {"complete"}
    assert 4_000 <= night.n_calls <= 4_000 + 2 * AT_ONCE * 2 * len(JUDGES)


def test_people_correct_the_jury_without_a_call(night, recorded):
    """What all people say lies in intervals that a quarter of their votes corrected.

    They are narrower than the intervals of these votes alone.
    """
    people = night.report["people"]

    assert night.n_calls_for_report == 0
    assert (people["rows"], people["left_out"]) == (100, 0)
    systems = {each["system"]: each["mean"] for each in people["estimates"]["systems"]}
    assert {*systems} == {*JUDGES}
    widths: dict[str, float] = defaultdict(float)
    for name, mean in systems.items():
        for measure in ("corrected", "people"):
            interval = mean[measure]["interval"]
            widths[measure] += interval["high"] - interval["low"]
        low, high = (mean["corrected"]["interval"][end] for end in ("low", "high"))
        assert low < recorded.share_of_people(name) < high
    assert widths["corrected"] < widths["people"]


def mean_overall(night: Night, model: str) -> float:
    """The mean over pairs of the jury's grade for a model, by the lines of the batch."""
    grades = [
        text["overall"]["mean"]
        for each in night.results
        for text in each["verdict"]["texts"]
        if text["text"] == model
    ]
    assert len(grades) == 160
    return sum(grades) / len(grades)


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra inspect is not installed")
def test_inspect_reads_every_sample(night, tmp_path):
    """One log per model; its mean grade is that of the batch, as is that of its jurors."""
    written = call_witan("export", "--inspect", tmp_path / "logs", "--history", night.history)
    code = (
        "import json\nfrom inspect_ai.log import list_eval_logs, read_eval_log\n"
        "logs = [read_eval_log(each) for each in list_eval_logs('logs')]\n"
        "values = {log.eval.model: [s.scores['witan_jury'].value for s in log.samples]"
        " for log in logs}\n"
        "print(json.dumps(values))"
    )
    read = run_python(code, cwd=tmp_path)
    assert read.returncode == 0, read.stderr
    values = json.loads(read.stdout)

    assert written.returncode == 0, written.stderr
    assert {*values} == {*JUDGES}
    for path in (tmp_path / "logs").iterdir():
        ballots = list(read_ballots(path))
        [model] = {candidate for ballot in ballots for candidate in ballot.grades}
        means = [each["overall"] for each in values[model]]
        assert sum(means) / len(means) == pytest.approx(mean_overall(night, model))
        grades = [ballot.grades[model]["preference"] for ballot in ballots]
        assert sum(grades) / len(grades) == pytest.approx(mean_overall(night, model))


@pytest.mark.skipif(
    not PROMPTFOO.exists(), reason="TEST_PROMPTFOO names no folder with promptfoo installed"
)
def test_promptfoo_imports_every_result(night, tmp_path):
    """A pair is a test, and its own export has all of them again, with their scores."""
    file, again = tmp_path / "results.json", tmp_path / "again.json"
    written = call_witan("export", "--kind", "promptfoo", "-o", file, "--history", night.history)
    switches = ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION")
    own = {f"PROMPTFOO_{name}": "1" for name in switches}
    own["PROMPTFOO_CONFIG_DIR"] = str(tmp_path / "own")
    for command in (["import", file], ["export", "eval", "latest", "-o", again]):
        done = run_program(PROMPTFOO, *command, cwd=tmp_path, env={**os.environ, **own})
        assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(again.read_text(encoding="utf-8"))["results"]["results"]

    assert written.returncode == 0, written.stderr
    assert len(results) == 800
    for model in JUDGES:
        scores = [each["score"] for each in results if each["provider"]["id"] == model]
        assert 9 * sum(scores) / len(scores) + 1 == pytest.approx(mean_overall(night, model))


def test_a_notebook_shows_the_corrected_shares_and_how_judges_agree_with_people(night, tmp_path):
    """A real kernel opens the history of the night: reports with intervals, and a data frame."""
    execution = execute(
        notebook_of(
            [
                "import witan",
                f"history = witan.History.open({str(night.history)!r}, reading=True)",
                "names = [each.session for each in history.find()]",
                "witan.stats.estimate(b for name in names for b in history.ballots(name))",
                "witan.leaderboard(history)",
                "audit = witan.audit(history).frame('polars')",
                "print(*audit['agreement_with_people'].drop_nulls())",
                "history.close()",
            ]
        ),
        tmp_path,
    )
    _, _, _, [estimates], [board], _, [agreement], _ = execution.outputs

    assert (
        "Corrected by people's votes, gpt4 has the highest share"
        in (estimates["data"]["text/markdown"])
    )
    assert "srcdoc=" in estimates["data"]["text/html"]
    assert "gpt4 has the best mean score" in board["data"]["text/markdown"]
    shares = [float(share) for share in agreement["text"].split()]
    assert len(shares) == len(JUDGES)
    assert all(0.6 < share < 0.85 for share in shares)
