"""The command ``witan-gate``: a verdict on a change.

It judges the change of a pull request, or one that is about to be committed.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

import witan
from witan import councils
from witan.bridges.replies import wait_for
from witan.reports import echo, judgment_text, verdict_sentence, verdict_text

if TYPE_CHECKING:
    from witan import Session

QUESTION = "Is this change safe to merge? Name the line of each problem."

STATUSES = {"passed": 0, "failed": 1, "too close to call": 5}
"""Exit status by decision, as in ``witan judge``."""

MISUSE, NO_VERDICT, OVER_BUDGET, INTERRUPTED = 2, 3, 4, 130

MOST_CHARACTERS = 60_000
"""Most characters of a comment; GitHub allows 65,536."""

IN_REPOSITORY = ("rev-parse", "--git-dir")
"""Arguments of git that fail outside of a repository."""

ZEROS = "0" * 40
"""Git's name for a missing commit."""

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_RUNTIME_TOKEN")
"""Variables of a job that no member of the council may read."""

_LINKS = re.compile(r"@|#(?=\d)|\bGH-(?=\d)|&(?=#|commat|num)", re.IGNORECASE)
"""Beginnings of GitHub's mentions of people and issues."""


class CannotJudge(click.ClickException):
    """The change cannot be read, so there is no verdict on it."""

    exit_code = NO_VERDICT


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate: decision, sentence and whole report.

    Parameters
    ----------
    decision
        The verdict's decision, or ``no verdict``.
    report
        Markdown, with text by others fenced.
    brief
        Text for a terminal: the sentence, then the final answer or the grades.
    """

    decision: str
    sentence: str
    report: str
    brief: str
    status: int
    session: str

    def comment(self, marker: str, name: str) -> str:
        """Write the comment: first the sentence, then the folded report."""
        report = _unlink(self.report)
        if len(report) > MOST_CHARACTERS:
            cut = report[:MOST_CHARACTERS].rpartition("\n")[0]
            rest = "The rest does not fit here; the summary of the job has the whole report."
            report = f"{cut}{_close_fence(cut)}\n\n{rest}"
        summary = "<summary>Answers, ballots and trust</summary>"
        details = f"<details>\n{summary}\n\n{report}\n\n</details>"
        title, sentence = _unlink(f"{name}: {self.decision}"), _unlink(self.sentence)
        return f"{marker}\n### {title}\n\n{sentence}\n\n{details}\n"


def _unlink(text: str) -> str:
    """Prevent GitHub from notifying the people a text mentions."""
    return _LINKS.sub("\\g<0>\u200b", text)


def _close_fence(markdown: str) -> str:
    """Return the closing fence of an open code block, or an empty text."""
    fence = ""
    for line in markdown.splitlines():
        ticks = len(line) - len(line.lstrip("`"))
        if not fence and ticks >= 3:
            fence = "`" * ticks
        elif fence and line == "`" * ticks and ticks >= len(fence):
            fence = ""
    return f"\n{fence}" if fence else ""


def find_range(base: str, environment: Mapping[str, str], *, staged: bool) -> list[str]:
    """Return the commits for `git diff` to compare.

    Raises
    ------
    UsageError
        If the base of the change is unknown.
    CannotJudge
        If the job for a pull request has checked out something else.
    """
    if staged:
        return ["--staged"]
    request = _pull_request(environment)
    before, after = (environment.get(f"PRE_COMMIT_{end}_REF", "") for end in ("FROM", "TO"))
    if base or not before or not after or before == ZEROS:
        before, after = base or request.get("base", {}).get("sha", ""), "HEAD"
    if not before or before.startswith("-"):
        raise click.UsageError("name what the change is compared with: --base REF, or --staged")
    if request:
        _check_head(request, after)
    return [f"{before}...{after}"]


def _check_head(request: Mapping[str, Any], after: str) -> None:
    """Refuse a checkout without the change of the pull request."""
    head = request.get("head", {}).get("sha")
    commit = _git("rev-parse", "--verify", f"{after}^{{commit}}").decode().strip()
    lines = _git("cat-file", "commit", commit).partition(b"\n\n")[0].decode("utf-8", "replace")
    parents = [line[7:] for line in lines.splitlines() if line.startswith("parent ")]
    if head != commit and not (len(parents) > 1 and head in parents):
        raise CannotJudge(
            f"{after} is neither the head of the pull request, {head}, nor a merge of it; "
            f"check it out, with ref: refs/pull/{request.get('number')}/merge"
        )


def _git(*arguments: str, stdin: bytes = b"") -> bytes:
    """Run git and return its output; raise ClickException if it fails."""
    process = subprocess.run(  # noqa: S603 - git itself, and options of ours before the rest
        ["git", *arguments],  # noqa: S607 - the user's own git
        input=stdin,
        capture_output=True,
        check=False,
    )
    if process.returncode:
        git_error = process.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        remedy = "check the name; in a job, check out the whole history, with fetch-depth: 0"
        if arguments == IN_REPOSITORY:
            remedy = "run this in the checkout of a repository"
        raise click.ClickException(f"{git_error}; {remedy}")
    return process.stdout


def read_diff(commits: list[str], paths: tuple[str, ...], most_bytes: int) -> str:
    """Read the change.

    Raises
    ------
    CannotJudge
        If a path matches neither a file of the repository nor one that the change removes.
    ClickException
        If git cannot compare, or the change is larger than `most_bytes`.
    """
    # A repository's settings for diffs could run a program, or hide the change.
    plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--text"]
    plain += ["--submodule=short", "--ignore-submodules=none"]
    for path in paths:
        tracked_files = _git("ls-files", "-z", "--", path)
        if not tracked_files and not _git("diff", "--name-only", *plain, *commits, "--", path):
            raise CannotJudge(f"no file matches {path!r}; name paths as git does")
    diff = _git("diff", *plain, *commits, "--", *paths)
    if len(diff) > most_bytes:
        binary = ", binary files included" if b"\0" in diff else ""
        raise click.ClickException(
            f"the change has {len(diff):,} bytes{binary}, more than {most_bytes:,}; "
            "name paths that matter, or raise --most-bytes"
        )
    return diff.decode("utf-8", "replace").replace("\0", "\ufffd")


@contextmanager
def base_settings(commit: str, config: str | None) -> Iterator[str | None]:
    """Change to a folder with a commit's TOML files; yield the configuration.

    Otherwise a change could configure a council that approves it, or a member that runs a program
    from the change.

    Raises
    ------
    ClickException
        If the configuration is in the checkout but not in that commit.
    """
    top = Path(os.fsdecode(_git("rev-parse", "--show-toplevel").rstrip(b"\n")))
    prefix = os.fsdecode(_git("rev-parse", "--show-prefix").rstrip(b"\n"))
    files = {}
    for entry in _git("ls-tree", "-rz", "--full-tree", commit).split(b"\0")[:-1]:
        about, name = entry.split(b"\t", 1)
        mode, _, blob = about.split()
        if mode.startswith(b"100"):  # no links: they may lead into the change
            files[os.fsdecode(name)] = blob
    target = None
    if config is not None:
        file = Path(config).expanduser()
        places = [Path(os.path.abspath(file)), file.resolve()]  # noqa: PTH100 - links as written
        inside = [each.relative_to(top).as_posix() for each in places if each.is_relative_to(top)]
        target = inside[0] if inside else None
        if target is not None and target not in files:
            raise click.ClickException(
                f"{config} is not in {commit}, which the change is based on; "
                "merge it first, or name a file outside of the checkout"
            )
        config = str(places[0])
    paths = [path for path in files if path.endswith(".toml") or path == target]
    contents = _git("cat-file", "--batch", stdin=b"".join(files[path] + b"\n" for path in paths))
    with TemporaryDirectory(dir=os.environ.get("RUNNER_TEMP")) as folder:
        for path in paths:
            head, _, contents = contents.partition(b"\n")
            size = int(head.split()[2])
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(contents[:size])
            contents = contents[size + 1 :]
        start = Path(folder, prefix)
        start.mkdir(parents=True, exist_ok=True)
        with chdir(start):
            yield config if target is None else str(Path(folder, target))


def judge_change(
    diff: str, question: str, pass_mark: float | None, level: float, options: Mapping[str, Any]
) -> GateResult:
    """Have a council decide on a change, or a jury grade it."""
    settings = {**options, "level": level}
    if pass_mark is None:
        settings["mode"] = "verdict"
    council = witan.Council.from_config(only_judges=pass_mark is not None, **settings)

    async def deliberate() -> "Session":
        async with council:
            if pass_mark is not None:
                return await council.judge(diff, question, pass_mark=pass_mark)
            return await council.ask(question, files={"change.diff": diff})

    session = wait_for(deliberate)
    decision, sentence = _decide(session, level)
    if session.status != "complete":
        sentence += f" The session is {session.status}; the report names what is missing."
    status = OVER_BUDGET if session.over_budget else STATUSES.get(decision, NO_VERDICT)
    report = session._repr_markdown_() or ""
    return GateResult(decision, sentence, report, _brief(session, sentence), status, session.id)


def _brief(session: "Session", sentence: str) -> str:
    if session.verdict is not None:
        return judgment_text(session)
    answer = f"{session.text or ''}{councils.ReplyFooter(legend=True).of(session)}".strip()
    return "\n\n".join(part for part in (sentence, answer, f"session {session.id}") if part)


def _decide(session: "Session", level: float) -> tuple[str, str]:
    if (verdict := session.verdict) is not None:
        return verdict.decision or "no verdict", f"{verdict_sentence(verdict)}."
    closing, votes = session.synthesis, session.approval
    if session.opening.judging is not None or closing is None or votes is None:
        return "no verdict", "The council reached no verdict."
    return _decide_by_votes(closing.approved, votes, level)


def _decide_by_votes(verdict: bool | None, votes: Any, level: float) -> tuple[str, str]:
    """Decide if the final answer and enough of the members agree."""
    verb = "approves" if votes.approve == 1 else "approve"
    sentence = f"{votes.approve} of {votes.approve + votes.reject} members {verb}"
    final = "The final answer gives no verdict"
    if verdict is not None:
        final = f"The final answer says {verdict_text(verdict)}"
    if not votes.approve + votes.reject:
        if verdict is None:
            return "no verdict", f"{final}, and neither does any member."
        return "too close to call", f"{final}, but no member gives a verdict."
    if votes.p_majority is None:
        return "too close to call", f"{final}; the members are divided: {sentence}."
    majority = "approval" if votes.is_approved else "rejection"
    sentence += f"; other such members agree on {majority} with probability {votes.p_majority:.2f}"
    if votes.is_approved is not verdict:
        do = "do" if verdict is None else "do not"
        return "too close to call", f"{final}, but most members {do}: {sentence}."
    if votes.p_majority < level:
        return "too close to call", f"{final}, but too narrowly: {sentence}, {level:g} is needed."
    return "passed" if votes.is_approved else "failed", f"{sentence}."


def _pull_request(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    event: dict[str, Any] = json.loads(Path(path).read_text("utf-8")) if path else {}
    return event.get("pull_request") or {}


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Comments of a pull request, through GitHub's REST API."""

    url: str
    repository: str
    number: int
    token: str

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> "PullRequest | None":
        """Find the job's pull request; None without one or a token."""
        number = _pull_request(environment).get("number")
        token, repository = environment.get("GITHUB_TOKEN"), environment.get("GITHUB_REPOSITORY")
        if not (isinstance(number, int) and token and repository):
            return None
        url = environment.get("GITHUB_API_URL") or "https://api.github.com"
        return cls(url, repository, number, token)

    def put_comment(self, marker: str, text: str) -> str | None:
        """Create or update the comment; return the failure, if any."""
        import httpx2

        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        issues = f"{self.url}/repos/{self.repository}/issues"
        try:
            with httpx2.Client(headers=headers, timeout=30) as client:
                own = self._find_comment(client, f"{issues}/{self.number}/comments", marker)
                if own is None:
                    address, send = f"{issues}/{self.number}/comments", client.post
                else:
                    address, send = f"{issues}/comments/{own}", client.patch
                send(address, json={"body": text}).raise_for_status()
        except httpx2.HTTPStatusError as error:
            return f"GitHub answered {error.response.status_code}"
        except httpx2.HTTPError as error:
            return f"GitHub cannot be reached: {type(error).__name__}"
        except ValueError:
            return "GitHub's answer cannot be read"
        return None

    def _find_comment(self, client: Any, address: str, marker: str) -> int | None:
        """Find our own comment with the marker.

        Anybody could write a comment with the marker, so the author is checked.
        """
        user = client.get(f"{self.url}/user")  # a job's token has no user and writes as a bot
        login = _fields(user.json()).get("login", "") if user.is_success else None
        for page in range(1, 31):
            query = {"per_page": 100, "page": page}
            comments = client.get(address, params=query).raise_for_status().json()
            if not isinstance(comments, list):
                raise ValueError("not a list of comments")
            for each in map(_fields, comments):
                author = _fields(each.get("user"))  # null if the account was deleted
                own = author.get("type") == "Bot" if login is None else author.get("login") == login
                number = each.get("id")
                if own and isinstance(number, int) and str(each.get("body")).startswith(marker):
                    return number
            if len(comments) < 100:
                break
        return None


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def publish(result: GateResult, name: str, environment: Mapping[str, str]) -> None:
    """Print the result; in a job, also write summary, outputs and comment."""
    if environment.get("GITHUB_ACTIONS") != "true":
        echo(f"{name}: {result.decision}\n\n{result.brief}")
        return
    report_text = f"{name}: {result.decision}\n\n{result.sentence}\n\n{result.report}\n"
    # The runner would execute workflow commands in a model's text.
    word = token_hex(16)
    echo(f"::stop-commands::{word}\n{report_text}\n::{word}::")
    marker = f"<!-- witan-gate: {name} -->"
    write_outputs(environment, result.decision, result.session)
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        _append(summary, f"### {name}: {result.decision}\n\n{result.sentence}\n\n{result.report}\n")
    request = PullRequest.find(environment)
    if request is None:
        echo("::notice::not commented: there is no pull request, or no token")
    elif problem := request.put_comment(marker, result.comment(marker, name)):
        echo(f"::warning::cannot comment: {problem}; the report is in the summary of the job")


def write_outputs(environment: Mapping[str, str], decision: str, session: str = "") -> None:
    """Set the outputs of the step, in a job."""
    if output := environment.get("GITHUB_OUTPUT"):
        _append(output, f"decision={decision}\nsession={session}\n")


def _append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)


@click.command(context_settings={"auto_envvar_prefix": "GATE"})
@click.option("--staged", is_flag=True, help="Judge the staged changes.")
@click.option("--base", default="", metavar="REF", help="Judge the changes since this commit.")
@click.option("--question", default=QUESTION, help="Question to ask about the change.")
@click.option(
    "--pass-mark",
    type=click.FloatRange(1, 10),
    help="Lowest passing grade, by a jury; without it members approve or reject.",
)
@click.option("--config", metavar="FILE.toml", help="Read this configuration.")
@click.option("--profile", default="", help="Seat the council of this profile.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="Required probability of a verdict.",
)
@click.option("--max-cost", type=click.FloatRange(0), help="Cost ceiling in US dollars.")
@click.option(
    "--most-bytes", type=click.IntRange(1), default=200_000, show_default=True,
    help="Largest change to judge, in bytes.",
)  # fmt: skip
@click.option(
    "--too-close", type=click.Choice(["fail", "warn"]), default="fail", show_default=True,
    help="With warn, exit with 0 if the verdict is too close to call.",
)  # fmt: skip
@click.option("--name", default="Witan", help="Name of this gate, if a pull request has several.")
@click.argument("paths", nargs=-1)
def main(paths: tuple[str, ...], **options: Any) -> None:
    """Have a council judge a change, or only PATHS of it.

    In a job of GitHub for a pull request, the change is that of the request, and its verdict is
    in a comment, which each run updates. Options are also read from variables such as
    GATE_PASS_MARK.

    Exit status: 0 passed, 1 failed, 2 misuse, 3 no verdict, 4 over budget, 5 too close to call,
    130 interrupted.
    """
    environment = dict(os.environ)
    try:
        status = _run(paths, options, environment)
    except witan.errors.OverBudget as error:
        status, words = OVER_BUDGET, str(error)
    except witan.errors.WitanError as error:
        status, words = MISUSE, str(error)
    except click.ClickException as error:
        status = NO_VERDICT if isinstance(error, CannotJudge) else MISUSE
        words = error.message
    except KeyboardInterrupt:
        status, words = INTERRUPTED, "interrupted, so there is no verdict"
    except Exception as error:  # noqa: BLE001 - status 1 would be a verdict
        status, words = NO_VERDICT, f"no verdict: internal error: {error!r}"
    else:
        sys.exit(status)
    echo(f"witan-gate: {words}", err=True)
    write_outputs(environment, "no verdict")
    sys.exit(status)


def _run(paths: tuple[str, ...], options: Mapping[str, Any], environment: Mapping[str, str]) -> int:
    if len(options["name"].splitlines()) != 1 or "-->" in options["name"]:
        raise click.UsageError("--name is one line, without -->")
    commits = find_range(options["base"], environment, staged=options["staged"])
    _git(*IN_REPOSITORY)
    diff = read_diff(commits, paths, options["most_bytes"])
    if not diff.strip():
        echo("nothing changed, so nothing is judged")
        write_outputs(environment, "nothing changed")
        return 0
    settings = {"path": options["config"], "profile": options["profile"]}
    if options["max_cost"] is not None:
        settings["max_cost_usd"] = options["max_cost"]
    request = (diff, options["question"], options["pass_mark"], options["level"])
    if environment.get("GITHUB_ACTIONS") == "true":
        for name in TOKENS:
            os.environ.pop(name, None)
        if history := environment.get("WITAN_HISTORY", "").strip():
            os.environ["WITAN_HISTORY"] = _absolute_place(history)
        base = _pull_request(environment).get("base", {}).get("sha")
        before = "HEAD" if options["staged"] else commits[0].partition("...")[0]
        config = options["config"] or environment.get("WITAN_CONFIG", "").strip() or None
        with base_settings(base or before, config) as path:
            result = judge_change(*request, {**settings, "path": path})
    else:
        result = judge_change(*request, settings)
    publish(result, options["name"], environment)
    return 0 if result.status == 5 and options["too_close"] == "warn" else result.status


def _absolute_place(history: str) -> str:
    scheme = "sqlite:///" if history.startswith("sqlite:///") else ""
    place = history.removeprefix(scheme)
    return history if "://" in place else f"{scheme}{Path(place).expanduser().absolute()}"
