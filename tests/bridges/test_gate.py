"""The gate for pull requests and commits: the GitHub action and the pre-commit hook."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import SimpleNamespace

import pytest
import yaml
from click import ClickException
from click.testing import CliRunner

from handlers import QuietHandler, run_handler
from pages import ROOT, blocks, same
from processes import run_program
from scripts import write_council, write_jury, write_script
from witan.bridges.gate import (
    CannotJudge,
    GateResult,
    base_settings,
    find_range,
    main,
    read_diff,
)

SCRIPTS = Path(sys.executable).parent

pytestmark = [
    pytest.mark.skipif(not (SCRIPTS / "witan-gate").exists(), reason="pip install -e . first"),
    pytest.mark.skipif(which("git") is None, reason="there is no git"),
]


class GitHub(QuietHandler, BaseHTTPRequestHandler):
    """Comments of one pull request, as GitHub's REST interface has them."""

    comments: list[dict]
    received: list[SimpleNamespace]
    refuses: bool

    def _note(self) -> dict:
        body = self.read_json()
        token = self.headers["Authorization"]
        self.received.append(SimpleNamespace(method=self.command, path=self.path, token=token))
        return body

    def do_GET(self) -> None:
        self._note()
        if self.path == "/user":
            self.reply(403, {"message": "Resource not accessible by integration"})
            return
        page = int(re.search(r"page=(\d+)$", self.path)[1])
        self.reply(200, self.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        body = self._note()
        if self.refuses:
            self.reply(403, {"message": "Resource not accessible by integration"})
            return
        user = {"login": "github-actions[bot]", "type": "Bot"}
        self.comments.append({"id": 1000 + len(self.comments), "user": user, **body})
        self.reply(201, self.comments[-1])

    def do_PATCH(self) -> None:
        body, number = self._note(), int(self.path.rpartition("/")[2])
        [comment] = [each for each in self.comments if each["id"] == number]
        comment.update(body)
        self.reply(200, comment)


@pytest.fixture
def github() -> Iterator[type[GitHub]]:
    """GitHub on loopback with a hundred comments of others, one with our marker."""
    stranger = {"login": "mallory", "type": "User"}
    comments = [
        {"id": n, "user": stranger, "body": "<!-- witan-gate: Witan -->"} for n in range(100)
    ]
    handler = type("Handler", (GitHub,), {"comments": comments, "received": [], "refuses": False})
    with run_handler(handler) as handler.url:
        yield handler


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *named, *arguments]
    return run_program(*command, check=True).stdout.strip()


@pytest.fixture
def change(tmp_path) -> Path:
    """A repository with a change on a branch, and a council that votes on it."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "app.py").write_text("retries = 3\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    (folder / "app.py").write_text("retries = 30  # moraine\n")
    # What a change brings along must not be imported.
    (folder / "click.py").write_text("raise SystemExit('imported from the change')\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Retry more")
    return folder


def seat(folder: Path, *votes: str, chair: str) -> None:
    """Configure members and a chairman with these votes."""
    texts = [f"It is bounded. ::error::x @octocat\n\nVERDICT: {vote}" for vote in votes]
    answers = {
        name: {"answer": [{"contains": "retries = 30", "text": text}]}
        for name, text in zip(("ada", "bob", "cyd"), texts, strict=True)
    }
    closing = {"synthesis": [{"text": f"So be it.\n\nVERDICT: {chair}"}]}
    options = write_council(folder.parent, **answers, chair=closing)
    members, chairman = options[1:-2:2], options[-1]
    configure(folder, f"members = {json.dumps(members)}\nchairman = {json.dumps(chairman)}\n")


def configure(folder: Path, settings: str, name: str = "witan.toml", **others: str) -> None:
    """Commit files to the base of the change."""
    change = git(folder, "rev-parse", "HEAD")
    git(folder, "checkout", "-q", "--detach", "HEAD~1")
    for each, text in {name: settings, **others}.items():
        (folder / each).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Configure", "--allow-empty")
    git(folder, "cherry-pick", change)


def commit(folder: Path, **files: str) -> None:
    """Add files to the change."""
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--amend", "--no-edit")


def event(folder: Path, head: str = "HEAD") -> str:
    """Describe the pull request of a commit as GitHub does."""
    ends = {"base": f"{head}~1", "head": head}
    commits = {end: {"sha": git(folder, "rev-parse", each)} for end, each in ends.items()}
    return json.dumps({"pull_request": {"number": 7, **commits}})


def run_action(folder: Path, github: type[GitHub] | None, **inputs: str) -> SimpleNamespace:
    """Run the last step of the action as GitHub would; return status, texts, summary, outputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    defaults = {name: each.get("default", "") for name, each in action["inputs"].items()}
    values = {**defaults, "token": "hush-hush", **inputs}
    step = action["runs"]["steps"][-1]
    expression = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
    own = {k: expression.sub(lambda m: values[m[1]], v) for k, v in step["env"].items()}
    assert "${{" not in step["run"]  # an input never becomes a part of the script
    runner = folder.parent / "runner"
    (runner / "witan").mkdir(parents=True, exist_ok=True)
    if not (runner / "witan" / "bin").exists():
        (runner / "witan" / "bin").symlink_to(SCRIPTS)
    (runner / "event.json").write_text(event(folder) if github else "{}")
    files = {name: runner / f"{name}.txt" for name in ("summary", "output")}
    for each in files.values():
        each.write_text("")
    job = {
        "RUNNER_TEMP": str(runner),
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(runner / "event.json"),
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_API_URL": github.url if github else "",
        "GITHUB_STEP_SUMMARY": str(files["summary"]),
        "GITHUB_OUTPUT": str(files["output"]),
    }
    done = run_program(
        "/bin/bash",
        "--noprofile",
        "--norc",
        "-eo",
        "pipefail",
        "-c",
        step["run"],
        cwd=folder,
        env={**os.environ, **job, **own},
    )
    texts = {name: each.read_text() for name, each in files.items()}
    assert "hush-hush" not in done.stdout + done.stderr + "".join(texts.values())
    return SimpleNamespace(status=done.returncode, out=done.stdout, err=done.stderr, **texts)


class TestAction:
    """The action on a pull request."""

    def test_a_verdict_is_one_comment_that_is_updated(self, change, github):
        """It has the probability, and leaves a comment of others with the marker unchanged."""
        seat(change, "APPROVE", "APPROVE", "APPROVE", chair="APPROVE")
        first = run_action(change, github)
        seat(change, "REJECT", "REJECT", "REJECT", chair="REJECT")
        second = run_action(change, github)
        [comment] = github.comments[100:]

        assert (first.status, second.status) == (0, 1), first.err + second.err
        assert (
            "3 of 3 members approve; other such members agree on approval with probability 0.92"
            in (first.summary)
        )
        assert comment["body"].startswith("<!-- witan-gate: Witan -->\n### Witan: failed\n\n0 of 3")
        assert "\n### Ballots" in comment["body"]
        assert {each.token for each in github.received} == {"Bearer hush-hush"}
        assert second.output.startswith("decision=failed\nsession=")

    @pytest.mark.slow  # each run is a process of its own
    def test_a_divided_council_is_too_close_to_call(self, change, github):
        """The job fails with a status of its own, or only warns."""
        seat(change, "APPROVE", "APPROVE", "REJECT", chair="APPROVE")
        failed = run_action(change, github)
        warned = run_action(change, github, **{"too-close": "warn"})
        sure = run_action(change, github, level="0.6")

        assert (failed.status, warned.status, sure.status) == (5, 0, 0)
        assert "decision=too close to call" in warned.output
        assert "says approved, but too narrowly: 2 of 3 members approve" in failed.summary
        assert "probability 0.66, 0.8 is needed" in failed.summary

    @pytest.mark.slow  # each run is a process of its own
    def test_answers_without_a_verdict_are_no_votes(self, change, github):
        """Nobody approves or rejects, or the chairman alone does, or all but the chairman."""
        seat(change, "PERHAPS", "PERHAPS", "PERHAPS", chair="PERHAPS")
        nobody = run_action(change, github)
        seat(change, "PERHAPS", "PERHAPS", "PERHAPS", chair="APPROVE")
        alone = run_action(change, github)
        seat(change, "APPROVE", "APPROVE", "APPROVE", chair="PERHAPS")
        silent = run_action(change, github)

        assert [nobody.status, alone.status, silent.status] == [3, 5, 5]
        assert "gives no verdict, and neither does any member." in nobody.summary
        assert "says approved, but no member gives a verdict." in alone.summary
        assert "gives no verdict, but most members do: 3 of 3 members approve" in silent.summary

    def test_a_jury_grades_against_a_pass_mark(self, change, github):
        """It then needs no members."""
        jury = write_jury(change.parent)
        configure(change, f"jury = {json.dumps(jury)}\n")
        passed = run_action(change, github, **{"pass-mark": "6"})
        failed = run_action(change, github, **{"pass-mark": "9.9"})
        silent = write_script(change.parent / "silent.toml", review=[{"text": "no"}])
        configure(change, f"jury = {json.dumps([*jury, f'script:{silent}'])}\n")
        degraded = run_action(change, github, **{"pass-mark": "6"})

        assert "could change it.\n" in passed.summary
        assert "could change it. The session is degraded; the report names" in degraded.summary
        assert (passed.status, failed.status) == (0, 1), passed.err + failed.err
        assert "passed: 9.0 (" in passed.summary

    @pytest.mark.slow  # each run is a process of its own
    def test_without_permission_to_comment_the_summary_has_the_verdict(self, change, github):
        """Examples are a fork and a job without a pull request."""
        seat(change, "APPROVE", "APPROVE", "APPROVE", chair="APPROVE")
        github.refuses = True
        forked = run_action(change, github)
        without_base = run_action(change, None)

        assert forked.status == 0
        assert "::warning::cannot comment: GitHub answered 403; the report is in the" in forked.out
        assert "### Witan: passed" in forked.summary
        assert without_base.status == 2
        assert "--base REF" in without_base.err

    @pytest.mark.slow  # each run is a process of its own
    def test_no_input_is_executed(self, change, github):
        """Neither shell, nor git, nor runner interprets it."""
        seat(change, "APPROVE", "APPROVE", "APPROVE", chair="APPROVE")
        marker = change.parent / "ran"
        done = run_action(
            change,
            github,
            question=f'"; touch {marker}; $(touch {marker}) `touch {marker}`',
            paths="app.py\n",
        )
        odd = run_action(change, github, paths=f"app.py\n--output={marker}\n")
        stop, rest = done.out.split("\n", 1)
        word = stop.removeprefix("::stop-commands::")

        assert done.status == 0, done.err
        assert odd.status == 3
        assert not marker.exists()
        assert "::error::x" in rest.partition(f"::{word}::")[0]
        assert "::error::x" not in rest.partition(f"::{word}::")[2]

    @pytest.mark.slow  # each run is a process of its own
    def test_an_invalid_request_is_misuse(self, change, github):
        """The change is too large, the profile unknown, or a name has two lines."""
        seat(change, "APPROVE", "APPROVE", "APPROVE", chair="APPROVE")
        large = run_action(change, github, **{"most-bytes": "10"})
        profile = run_action(change, github, profile="none")
        name = run_action(change, github, name="a -->")

        assert [each.status for each in (large, profile, name)] == [2, 2, 2]
        assert {each.output for each in (large, profile, name)} == {
            "decision=no verdict\nsession=\n"
        }
        assert "more than 10; name paths that matter, or raise --most-bytes" in large.err
        assert "unknown profile 'none'" in profile.err
        assert "Traceback" not in large.err + profile.err + name.err


class TestHostileChange:
    """A change can neither hide from the council nor choose its members."""

    def test_git_attributes_hide_nothing(self, change):
        """The council reads a file that the change calls binary; real binary files are counted."""
        commit(change, **{".gitattributes": "*.py -diff\n.gitattributes -diff\n", "x.bin": "a\0b"})
        with chdir(change):
            diff = read_diff(["HEAD~1...HEAD"], (), 10_000)
            with pytest.raises(ClickException, match="binary files included, more than 10"):
                read_diff(["HEAD~1...HEAD"], (), 10)

        assert "+retries = 30" in diff
        assert "+*.py -diff" in diff
        assert "+a\ufffdb" in diff

    def test_an_ignored_submodule_is_shown(self, change):
        """Its commit is part of the change, whatever `.gitmodules` says."""
        modules = '[submodule "m"]\n\tpath = m\n\turl = ./m\n\tignore = all\n'
        hashes = [git(change, "rev-parse", each) for each in ("HEAD", "HEAD~1")]
        for each in hashes:
            (change / ".gitmodules").write_text(modules)
            git(change, "add", ".")
            git(change, "update-index", "--add", "--cacheinfo", f"160000,{each},m")
            git(change, "commit", "-qm", "Move the module")
        with chdir(change):
            diff = read_diff(["HEAD~1...HEAD"], (), 10_000)

        assert f"+Subproject commit {hashes[1]}" in diff

    def test_a_checkout_without_the_change_has_no_verdict(self, change):
        """`pull_request_target` has one; the pull request and its merge are compared."""
        file = change.parent / "event.json"
        file.write_text(event(change))
        job = {"GITHUB_EVENT_PATH": str(file)}
        git(change, "branch", "change")
        with chdir(change):
            head = find_range("", job, staged=False)
            git(change, "checkout", "-q", "HEAD~1")
            with pytest.raises(CannotJudge, match="HEAD is neither the head of the pull request"):
                find_range("", job, staged=False)
            git(change, "merge", "-q", "--no-ff", "-m", "Merge", "change")
            merge = find_range("", job, staged=False)

        assert head == merge == [f"{git(change, 'rev-parse', 'change~1')}...HEAD"]

    @pytest.mark.slow  # each run is a process of its own
    def test_a_path_without_files_has_no_verdict(self, change, github):
        """An unchanged file is not judged, and passes; blank lines name no path."""
        configure(change, "", "README")
        absent = run_action(change, github, paths="app.py\nnosuch/")
        same = run_action(change, github, paths="\nREADME\n\n")

        assert (absent.status, same.status) == (3, 0), absent.err + same.err
        assert "no file matches 'nosuch/'" in absent.err
        assert absent.output == "decision=no verdict\nsession=\n"
        assert same.output == "decision=nothing changed\nsession=\n"

    @pytest.mark.slow  # each run is a process of its own
    @pytest.mark.parametrize("config", ["", "council.toml"])
    def test_a_configuration_takes_effect_once_it_is_merged(self, change, github, config):
        """The change's own seats and scripts are not read, found or named."""
        seat(change, "REJECT", "REJECT", "REJECT", chair="REJECT")
        names = ("ada", "bob", "cyd", "chair")
        scripts = {f"{each}.toml": (change.parent / f"{each}.toml").read_text() for each in names}
        seats = 'members = ["script:ada.toml", "script:bob.toml", "script:cyd.toml"]\n'
        file = config or "witan.toml"
        configure(change, f'{seats}chairman = "script:chair.toml"\n', file, **scripts)
        marker = change.parent / "ran"
        approval = "[[answer]]\ntext = 'VERDICT: APPROVE'\n"
        own = dict.fromkeys(scripts, approval)
        commit(change, **{**own, file: f"members = ['cmd:touch {marker}']\n"})
        done = run_action(change, github, config=config)

        assert done.status == 1, done.out + done.err
        assert not marker.exists()

    def test_settings_are_read_from_the_base_commit(self, change):
        """They may be in a folder of their own; a file outside the checkout is read as it is."""
        configure(change, "mode = 'verdict'\n", "council.toml", **{"witan.toml": "# base\n"})
        outside = change.parent / "outside.toml"
        commit(change, **{"council.toml": "", "witan.toml": "# change\n"})
        with chdir(change):
            with base_settings("HEAD~1", None) as found:
                assert Path("witan.toml").read_text() == "# base\n"
                assert not Path("app.py").exists()
            with base_settings("HEAD~1", "./council.toml") as named:
                assert Path(named).read_text() == "mode = 'verdict'\n"
            with base_settings("HEAD~1", str(outside)) as other:
                assert other == str(outside)

        assert found is None

    def test_a_configuration_only_in_the_change_is_refused(self, change):
        """The error says where to put it."""
        commit(change, **{"council.toml": "members = ['cmd:true']\n"})
        with (
            chdir(change),
            pytest.raises(ClickException, match="merge it first, or name a file outside"),
            base_settings("HEAD~1", "council.toml"),
        ):
            pass

    @pytest.mark.slow  # each run is a process of its own
    def test_members_cannot_read_the_token(self, change, github):
        """Not even a program in the base commit can."""
        program = change.parent / "member.sh"
        program.write_text('echo "token: ${GITHUB_TOKEN:-none}"; echo; echo "VERDICT: REJECT"\n')
        seats = json.dumps([f"cmd:sh {program}"] * 2)
        configure(change, f"members = {seats}\n", "council.toml")
        done = run_action(change, github, config="council.toml")

        assert "token: none" in done.summary, done.out + done.err
        assert {each.token for each in github.received} == {"Bearer hush-hush"}

    def test_seats_of_the_tutorial_are_installed(self):
        """The keys of its workflow belong to providers that need no extra, or get it."""
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        [step] = [each for each in action["runs"]["steps"] if "SOURCE" in each.get("env", {})]
        page = (ROOT / "docs" / "tutorials" / "gate-a-pull-request.md").read_text()
        keys = set(re.findall(r"secrets\.(\w+)_API_KEY", page))

        assert step["env"]["EXTRAS"] == "${{ inputs.extras }}"
        assert step["run"].rstrip().endswith('"$SOURCE[$EXTRAS]"')
        assert keys == {"OPENAI", "ANTHROPIC"}
        assert "anthropic" in action["inputs"]["extras"]["default"].split(",")

    @pytest.mark.slow  # makes an environment
    def test_the_environment_is_made_without_modules_of_the_change(self, tmp_path):
        """A `venv.py` or `pip.py` of the checkout is not imported."""
        for name in ("venv", "pip", "logging"):
            (tmp_path / f"{name}.py").write_text("print('imported from the change')\n")
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        [step] = [each for each in action["runs"]["steps"] if "SOURCE" in each.get("env", {})]
        own = {"PYTHON": sys.executable, "SOURCE": "./absent", "RUNNER_TEMP": str(tmp_path / "t")}
        done = run_program("/bin/bash", "-c", step["run"], cwd=tmp_path, env={**os.environ, **own})

        assert "./absent" in done.stderr
        assert "imported from the change" not in done.stdout + done.stderr


class TestComment:
    """The comment on a pull request."""

    @pytest.mark.slow  # each run is a process of its own
    def test_unusual_comments_of_others_are_skipped(self, change, github):
        """They have a deleted account, no text, or no login."""
        seat(change, "REJECT", "REJECT", "REJECT", chair="REJECT")
        body = "<!-- witan-gate: Witan -->"
        github.comments[:3] = [
            {"id": 0, "user": None, "body": body},
            {"id": 1, "user": {"type": "Bot"}, "body": None},
            {"user": {"type": "Bot"}, "body": body},
        ]
        done = run_action(change, github)

        assert done.status == 1, done.err
        assert len(github.comments) == 101

    def test_an_unexpected_error_is_not_a_verdict(self, change):
        """Status 1 would be a verdict."""
        file = change.parent / "event.json"
        file.write_text("[]")
        job = {"GITHUB_EVENT_PATH": str(file), "GITHUB_OUTPUT": str(change.parent / "output.txt")}
        done = CliRunner().invoke(main, env=job)

        assert done.exit_code == 3
        assert "no verdict: internal error" in done.stderr
        assert (change.parent / "output.txt").read_text() == "decision=no verdict\nsession=\n"

    def test_outside_of_a_repository_it_says_so(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(main, ["--staged"])

        assert done.exit_code == 2
        assert "not a git repository" in done.stderr
        assert done.stderr.endswith("; run this in the checkout of a repository\n")

    @pytest.mark.slow  # a process of its own
    @pytest.mark.skipif(sys.platform == "win32", reason="this system has no such signal")
    def test_an_interrupt_is_not_a_verdict(self, change, tmp_path):
        slow = f"script:{write_script(tmp_path / 'slow.toml', review=[{'seconds': 99}])}"
        (change / "witan.toml").write_text(f"jury = {json.dumps([slow] * 2)}")
        place = tmp_path / "history.sqlite"
        process = subprocess.Popen(  # noqa: S603 - our own command
            [f"{SCRIPTS}/witan-gate", "--base", "HEAD~1", "--pass-mark", "6"],
            cwd=change,
            env={**os.environ, "WITAN_HISTORY": str(place)},
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not place.exists():  # it is created before the first call
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)

        assert process.communicate(timeout=60)[1].endswith("so there is no verdict\n")
        assert process.returncode == 130

    def test_a_comment_notifies_nobody(self):
        """Mentions of people and issues contain a zero-width space."""
        text = "@octocat &#64;octocat owner/project#12 GH-7 # Title"
        comment = GateResult("failed", text, text, text, 1, "s").comment("<!-- m -->", "@org/team")

        assert comment.count("@\u200boctocat &\u200b#\u200b64;octocat") == 2
        assert comment.count("owner/project#\u200b12 GH-\u200b7 # Title") == 2
        assert "### @\u200borg/team: failed" in comment


def test_the_tutorial_shows_what_happens(tmp_path):
    """Its files, commands and output."""
    written = blocks(ROOT / "docs" / "tutorials" / "gate-a-pull-request.md")
    for block in written:
        if block.title is not None:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
    [commands] = [block.text for block in written if block.language == "sh"]
    [shown] = [block.text for block in written if block.language == "text"]
    done = run_program(
        "/bin/bash",
        "-c",
        commands,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
    )

    assert same(shown, done.stdout), done.stdout + done.stderr


@pytest.mark.slow  # pre-commit clones this repository
@pytest.mark.skipif(find_spec("pre_commit") is None, reason="pre-commit is not installed")
def test_pre_commit_runs_the_hook(change, tmp_path):
    """The real package runs it from a clone; only the installation is that of the tests."""
    seat(change, "REJECT", "REJECT", "REJECT", chair="REJECT")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--no-hardlinks", str(ROOT), str(clone))
    for name in (".pre-commit-hooks.yaml",):
        (clone / name).write_text((ROOT / name).read_text())
    git(clone, "add", ".")
    git(clone, "commit", "-q", "--allow-empty", "-m", "As it is here")
    hook = {"id": "witan-gate", "language": "system", "entry": f"{SCRIPTS}/witan-gate --staged"}
    repos = [{"repo": str(clone), "rev": git(clone, "rev-parse", "HEAD"), "hooks": [hook]}]
    (change / ".pre-commit-config.yaml").write_text(json.dumps({"repos": repos}))
    (change / "app.py").write_text("retries = 30\n")
    git(change, "add", ".")
    done = run_program(
        sys.executable,
        "-m",
        "pre_commit",
        "run",
        cwd=change,
        env={**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")},
    )

    assert done.returncode == 1, done.stderr
    assert "verdict of a council" in done.stdout
    assert "- exit code: 1" in done.stdout
    assert "0 of 3 members approve; other such members agree on rejection" in done.stdout
