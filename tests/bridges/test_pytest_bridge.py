"""`assert_judged`, by pytest itself."""

import json
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from processes import run_program
from scripts import write_jury, write_script

pytestmark = pytest.mark.skipif(
    not entry_points(group="pytest11", name="witan"),
    reason="Witan was installed before it had this plugin: pip install -e .",
)

OPTIONS = (
    "-q", "-rA", "--import-mode=importlib", "-p", "no:langsmith_plugin",
    "-p", "no:schemathesis", "-p", "no:hypothesispytest",
)  # fmt: skip
"""Plugins of other packages take two seconds to import."""


MODULE = "test_only_judged"
"""Name of the module of these tests; no test file of this project has it."""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write tests with these bodies, with a jury that prefers moraines; change to their folder."""
    jury = write_jury(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # Options for the tests of this project, such as Hypothesis profiles, are not for these.
    monkeypatch.setenv("PYTEST_ADDOPTS", "")

    def write_tests(*bodies):
        lines = [f"JURY = {jury!r}"]
        for number, body in enumerate(bodies):
            lines += [f"def test_{number}(assert_judged):", *(f"    {x}" for x in body.split("\n"))]
        (tmp_path / f"{MODULE}.py").write_text("\n".join(lines), encoding="utf-8")

    return write_tests


@pytest.fixture
def run(write, capsys):
    """Run pytest in this process on tests with these bodies; return its status and output."""

    def run_pytest(*bodies, options=()):
        write(*bodies)
        capsys.readouterr()
        sys.modules.pop(MODULE, None)
        status = pytest.main([*OPTIONS, *options])
        return status, capsys.readouterr().out

    return run_pytest


@pytest.fixture
def run_process(write):
    """Run pytest in its own process on tests with these bodies; return the process."""

    def run_pytest(*bodies):
        write(*bodies)
        command = [sys.executable, "-m", "pytest", *OPTIONS]
        return run_program(*command)

    return run_pytest


GOOD = 'assert_judged("It is the moraine.", question="What is it?", pass_mark=6, jury=JURY)'


def stored(folder: Path) -> list[Path]:
    return sorted((folder / ".pytest_cache" / "d" / "witan").glob("*.json"))


class TestDecisions:
    """A test passes if the text does."""

    def test_the_message_begins_with_the_verdict(self, run_process, tmp_path):
        silent = write_script(tmp_path / "silent.toml", review=[{"text": "no"}])
        cases = {
            '"a moraine", pass_mark=6, jury=JURY': "",
            '"a glacier", pass_mark=8, jury=JURY': "AssertionError: failed: 3.0",
            '"a moraine", pass_mark=9, jury=JURY': "AssertionError: too close to call: 9.0",
            '"a moraine", pass_mark=9, jury=JURY, allow_too_close=True': "",
            '"a glacier", pass_mark=8, jury=JURY, allow_too_close=True': "AssertionError: failed",
            '["a moraine", "a glacier"], jury=JURY': "",
            '{"a": "a moraine", "b": "a glacier"}, expected="b", jury=JURY': (
                "AssertionError: failed: a leads clearly; b was expected"
            ),
            '"a moraine", jury=JURY': "witan.errors.InvalidParameter: pass_mark",
            '"a moraine", passmark=6, jury=JURY': "witan.errors.UnknownOption: unknown",
            f'"a moraine", pass_mark=6, jury=["script:{silent}"] * 2': (
                "AssertionError: no verdict: simulated session"
            ),
        }
        done = run_process(*(f"assert_judged({arguments})" for arguments in cases))

        assert done.stderr == ""
        for number, words in enumerate(cases.values()):
            status = f"FAILED test_only_judged.py::test_{number} - {words}" if words else None
            assert (status or f"PASSED test_only_judged.py::test_{number}\n") in done.stdout

    def test_a_misspelt_option_gets_the_nearest(self, run):
        """Also of the options that are no settings of a council."""
        _, said = run('assert_judged("a moraine", passmark=6, jury=JURY)')

        assert "unknown option 'passmark'; did you mean 'pass_mark'?" in said

    def test_the_message_has_the_table_and_the_line_of_the_test(self, run):
        """Each criterion has its interval, and no line of the plugin is shown."""
        _, said = run('assert_judged("a glacier", pass_mark=8, jury=JURY)')

        assert "accuracy" in said
        assert "3.0 (" in said
        assert "test_only_judged.py:3: AssertionError" in said
        assert "pytest_plugin.py" not in said

    def test_misuse_ends_at_the_line_of_the_test(self, run):
        _, said = run('assert_judged("a moraine", pass_mark=60, jury=JURY)')

        assert "pass_mark cannot be 60; expected a grade from 1 to 10" in said
        assert "test_only_judged.py:3: InvalidParameter" in said
        assert "src/witan" not in said

    def test_a_configured_jury_needs_no_members(self, run, tmp_path):
        """As for `witan.judge`."""
        (tmp_path / "witan.toml").write_text(f"jury = {json.dumps(write_jury(tmp_path))}")
        status, said = run('assert_judged("a moraine", pass_mark=6)')

        assert status == 0, said

    def test_a_named_session_is_reused(self, run, tmp_path):
        """It is stored under that name."""
        body = GOOD.replace("jury=JURY", 'jury=JURY, name="terminal moraine"')
        body += '.id == "terminal moraine"'

        assert [run(f"assert {body}")[0] for _ in range(2)] == [0, 0]
        assert len(stored(tmp_path)) == 1

    def test_a_text_is_judged_inside_an_event_loop(self, run):
        status, said = run(
            f"import asyncio\nasync def main():\n    return {GOOD}\nasyncio.run(main())"
        )

        assert status == 0, said


class TestCache:
    """A repeated run makes no call."""

    def test_an_unchanged_test_is_read_from_the_cache(self, run, run_process, tmp_path):
        """The session is that of the first run, also in another process."""
        body = f'print("session", {GOOD}.id)'
        [line] = [line for line in run(body)[1].splitlines() if line.startswith("session")]

        assert line in run_process(body).stdout
        assert len(stored(tmp_path)) == 1

    def test_any_change_is_judged_again(self, run, tmp_path):
        """Text, question, mark, jury, script, settings and reference are part of the key."""
        other = tmp_path / "zoe.toml"
        changes = [
            ("It is the moraine", "It is a moraine"),
            ("What is it?", "What?"),
            ("pass_mark=6", "pass_mark=5"),
            ("jury=JURY", "jury=JURY[:2]"),
            ("jury=JURY", "jury=JURY, mirrored=True"),
            ("jury=JURY", "jury=JURY, reference='moraine'"),
        ]
        rewrite = f"from pathlib import Path\nfile = Path({str(other)!r})\n"
        rewrite += "file.write_text(file.read_text().replace('9', '8'))\n"
        bodies = [GOOD, *(GOOD.replace(*change) for change in changes), rewrite + GOOD]
        status, said = run(*bodies)

        assert status == 0, said
        assert len(stored(tmp_path)) == len(bodies)

    def test_an_incomplete_session_is_shown_and_not_cached(self, run, tmp_path):
        """The next run calls the jury again."""
        silent = write_script(tmp_path / "silent.toml", review=[{"text": "no"}])
        body = f'assert_judged("a moraine", pass_mark=6, jury=[*JURY, "script:{silent}"])'
        status, said = run(body, options=("-W", "default"))

        assert status == 0, said
        assert f"{MODULE}.py:3: UserWarning: degraded judgment: silent cast no ballot" in said
        assert stored(tmp_path) == []

    def test_a_damaged_file_is_judged_again(self, run, tmp_path):
        """It is then replaced."""
        run(GOOD)
        [file] = stored(tmp_path)
        whole = file.read_text()
        file.write_text(whole[: len(whole) // 2])

        assert run(GOOD)[0] == 0
        assert len(file.read_text()) == pytest.approx(len(whole), rel=0.1)

    def test_without_a_cache_texts_are_judged(self, run, tmp_path):
        """Nothing is written."""
        status, said = run(GOOD, options=["-p", "no:cacheprovider"])

        assert status == 0, said
        assert stored(tmp_path) == []
