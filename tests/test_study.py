"""The study of a council prints the known figures of real votes, and learns nothing from people."""

import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "study_of_a_council.py"
COUNCIL = ROOT.parent / "shared" / "data" / "prd_vicuna80"
NUMBER = r"[-+]?\d+\.\d+"
HEADER = "prompt_id,judge,judge_kind,first,second,outcome\n"

real = pytest.mark.skipif(
    not COUNCIL.is_dir(),
    reason="the real council is not beside this checkout (../shared/data/prd_vicuna80)",
)


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of the script ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Run:
    """Run the script in this process, as a new interpreter would."""
    before = sys.argv
    sys.argv = [str(SCRIPT), *map(str, arguments)]
    code: int | str | None = 0
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.argv = before
    if isinstance(code, str):
        return Run(1, out.getvalue(), err.getvalue() + code)
    return Run(code or 0, out.getvalue(), err.getvalue())


def study(folder: Path) -> str:
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str, name: str) -> list[float]:
    """Agreement with its interval, then the difference with its own, of the line of that name."""
    (line,) = (line for line in text.splitlines() if re.match(rf"{name}  ", line))
    return [float(number) for number in re.findall(NUMBER, line)]


def write(folder: Path, rows: Iterable[str]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "pairwise.csv").write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    return folder


def council(n_questions: int = 12, *, opposed: bool = False) -> list[str]:
    """Three reviewers of their own three answers, of whom c answers by position, and people."""
    rng = np.random.default_rng(5)
    rows = []
    for question in range(n_questions):
        for pair in (("a", "b"), ("a", "c"), ("b", "c")):
            people = int(rng.random() < 0.3) ^ opposed
            rows.append(f"{question},human,human,{pair[0]},{pair[1]},{('first', 'second')[people]}")
            for reviewer, chance in (("a", 0.1), ("b", 0.25), ("c", 0.9)):
                for shown in (pair, pair[::-1]):
                    by_place = rng.random() < chance
                    said = "first" if by_place or shown == pair else "second"
                    rows.append(f"{question},{reviewer},llm,{shown[0]},{shown[1]},{said}")
    return rows


@pytest.fixture(scope="module")
def printed() -> str:
    return study(COUNCIL)


@real
class TestRealCouncil:
    """Five models and people on forty questions."""

    @pytest.mark.parametrize(
        ("name", "known"),
        [
            (r"best single reviewer \(gpt35\), both orders", 0.772),
            ("one order for all: earlier name first", 0.730),
            ("one order for all: later name first", 0.770),
            ("both orders", 0.784),
            ("both orders, without own votes", 0.763),
            ("weighted by consistency here", 0.806),
        ],
    )
    def test_agreement_equals_the_published_figures(self, printed, name, known):
        """Agreement is, to the digit, what the description of the data lists."""
        assert numbers(printed, name)[0] == known

    def test_a_balanced_order_is_close_to_a_random_one(self, printed):
        """Drawn at random per reviewer it is .748; the mean over draws lies within a point."""
        agreement = numbers(printed, r"balanced order, mean of \d+ draws")[0]

        assert agreement == pytest.approx(0.748, abs=0.01)

    def test_learned_weights_gain_more_than_noise(self, printed):
        """The paired interval of the gain over both orders is above zero."""
        _, _, _, gain, low, high = numbers(printed, "weighted by consistency elsewhere")

        assert 0 < low < gain < high

    def test_the_page_has_the_printed_output(self, printed):
        assert f"```text\n{printed}```" in (ROOT / "docs" / "study.md").read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("name", "share", "alone"), [("gpt35", "279 / 400 = 0.70", 0.772), ("gpt4", "0.66", 0.765)]
    )
    def test_each_reviewer_has_its_line(self, printed, name, share, alone):
        """Order-consistency and agreement alone are those listed with the data."""
        (line,) = (line for line in printed.splitlines() if line.startswith(f"{name} "))

        assert share in line
        assert f" {alone} " in line


class TestAnyCouncil:
    """The same on votes made up here."""

    def test_three_questions_by_hand(self, tmp_path):
        """Two who always choose the first name, and one the place, agree with people 7 in 9."""
        rows = []
        for question in range(3):
            for first, second in (("a", "b"), ("a", "c"), ("b", "c")):
                wrong = question == 0 and first == "a"
                said = "second" if wrong else "first"
                rows.append(f"{question},human,human,{first},{second},{said}")
                for reviewer in "abc":
                    rows.append(f"{question},{reviewer},llm,{first},{second},first")
                    turned = "first" if reviewer == "c" else "second"
                    rows.append(f"{question},{reviewer},llm,{second},{first},{turned}")

        printed = study(write(tmp_path, rows))

        assert all(fact in printed for fact in ("3 questions, 3 reviewers", "9 pairs"))
        for name in ("both orders", "one order for all: later name first"):
            assert numbers(printed, name)[0] == 0.778
        assert re.search(r"^c +0 / 9 = 0\.00 .* 0\.500 ", printed, flags=re.M)

    def test_labels_of_people_are_not_used(self, tmp_path):
        """With reversed labels, agreement is one less the original."""
        as_voted = study(write(tmp_path / "one", council()))
        opposed = study(write(tmp_path / "two", council(opposed=True)))

        for name in (
            "both orders",
            "weighted by consistency elsewhere",
            "the same, pooled with history",
            "ranking by weighted_borda, own votes counted",
        ):
            told = numbers(as_voted, name)[0], numbers(opposed, name)[0]
            assert sum(told) == pytest.approx(1, abs=0.0011)
            assert told[0] != told[1]

    def test_the_study_is_reproducible(self, tmp_path):
        """Draws are seeded."""
        folder = write(tmp_path, council())

        assert study(folder) == study(folder)

    def test_a_missing_vote_counts_for_neither_side(self, tmp_path):
        """A missing or invalid comparison does not end the study."""
        rows = council()
        gap = next(n for n, row in enumerate(rows) if ",b,llm," in row)

        left_out = study(write(tmp_path / "one", rows[:gap] + rows[gap + 1 :]))
        invalid = [*rows[:gap], rows[gap].rsplit(",", 1)[0] + ",invalid", *rows[gap + 1 :]]

        assert left_out == study(write(tmp_path / "two", invalid))
        assert re.search(r"^b +\d+ / 35 ", left_out, flags=re.M)


class TestBadInput:
    """A sentence, and a status that is not zero."""

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ([row for row in council() if ",human," not in row], "by models and by people"),
            (council(2), "three questions"),
            (
                [row.rsplit(",", 1)[0] + ",tie" if ",human," in row else row for row in council()],
                "no pair that a majority of people decided",
            ),
            ([row for row in council() if not re.search(r",c,llm,[bc],a", row)][:5], "three"),
            ([row for row in council() if not re.search(r"c,llm,(b,a|c,)", row)], "c saw pairs"),
        ],
    )
    def test_a_council_too_small_is_refused(self, tmp_path, rows, said):
        """What is missing is named, with the file."""
        done = run(write(tmp_path, rows))

        assert done.returncode == 1
        assert said in done.stderr
        assert "pairwise.csv" in done.stderr

    def test_a_folder_without_votes_is_named(self, tmp_path):
        """The file that was looked for is in the sentence."""
        done = run(tmp_path)

        assert done.returncode == 1
        assert "pairwise.csv" in done.stderr

    def test_a_reader_that_leaves_early_is_no_error(self, tmp_path):
        """Piped into a program that closes its input, it ends without a traceback."""
        command = [sys.executable, "-W", "error", str(SCRIPT), str(write(tmp_path, council()))]
        with subprocess.Popen(  # noqa: S603 - our own script
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            process.stdout.close()
            said = process.stderr.read()

        assert (process.returncode, said) == (141, "")

    def test_help_is_on_standard_output(self):
        done = run("--help")

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: study_of_a_council.py [-h] FOLDER")
        assert "pairwise.csv" in done.stdout

    def test_without_a_folder_the_usage_is_on_standard_error(self):
        done = run()

        assert done.returncode == 2
        assert done.stderr.startswith("usage:")
