"""A verdict on a change, for a pull request or before a commit: the command ``witan-gate``."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import click

import witan
from witan.bridges.replies import wait_for
from witan.reports import echo, verdict_sentence

if TYPE_CHECKING:
    from witan import Session

QUESTION = "Is this change safe to merge? Name the line of each problem."

STATUSES = {"passed": 0, "failed": 1, "too close to call": 5}
"""Decision to exit status, as of ``witan judge``."""

NO_VERDICT, OVER_BUDGET = 3, 4

MOST_CHARACTERS = 60_000
"""A comment of GitHub takes 65,536."""

ZEROS = "0" * 40
"""What git calls a commit that is not there."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate, in a sentence and whole.

    Parameters
    ----------
    decision
        As of a verdict, or ``no verdict``.
    report
        Markdown, foreign text in it fenced.
    """

    decision: str
    sentence: str
    report: str
    status: int
    session: str

    def comment(self, marker: str, name: str) -> str:
        """Write the comment: the sentence first, the report folded under it."""
        report = self.report
        if len(report) > MOST_CHARACTERS:
            cut = report[:MOST_CHARACTERS].rpartition("\n")[0]
            rest = "The rest does not fit; the summary of the job has it."
            report = f"{cut}{_close_fence(cut)}\n\n{rest}"
        summary = "<summary>Answers, ballots and trust</summary>"
        details = f"<details>\n{summary}\n\n{report}\n\n</details>"
        return f"{marker}\n### {name}: {self.decision}\n\n{self.sentence}\n\n{details}\n"


def _close_fence(markdown: str) -> str:
    """Return what closes a code block that is open at the end; empty: none is."""
    fence = ""
    for line in markdown.splitlines():
        ticks = len(line) - len(line.lstrip("`"))
        if not fence and ticks >= 3:
            fence = "`" * ticks
        elif fence and line == "`" * ticks and ticks >= len(fence):
            fence = ""
    return f"\n{fence}" if fence else ""


def find_range(base: str, environment: Mapping[str, str], *, staged: bool) -> list[str]:
    """Say what `git diff` compares.

    Raises
    ------
    UsageError
        If nothing says what the change is based on.
    """
    if staged:
        return ["--staged"]
    pushed = environment.get("PRE_COMMIT_FROM_REF"), environment.get("PRE_COMMIT_TO_REF")
    if not base and pushed[0] and pushed[1] and pushed[0] != ZEROS:
        return [f"{pushed[0]}...{pushed[1]}"]
    base = base or _event(environment).get("pull_request", {}).get("base", {}).get("sha", "")
    if not base or base.startswith("-"):
        raise click.UsageError("name what the change is compared with: --base REF, or --staged")
    return [f"{base}...HEAD"]


def read_diff(compared: list[str], paths: tuple[str, ...], most_bytes: int) -> str:
    """Read the change.

    Raises
    ------
    ClickException
        If git cannot compare, or the change is larger than that.
    """
    # What a repository says on how to show a difference could run a program.
    plain = ["--no-color", "--no-ext-diff", "--no-textconv"]
    done = subprocess.run(  # noqa: S603 - git itself, and options of ours before the rest
        ["git", "diff", *plain, *compared, "--", *paths],  # noqa: S607 - the user's own git
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise click.ClickException(f"{said}; check out the whole history, with fetch-depth: 0")
    if len(done.stdout) > most_bytes:
        raise click.ClickException(
            f"the change has {len(done.stdout):,} bytes, more than {most_bytes:,}; "
            "name paths that matter, or raise --most-bytes"
        )
    return done.stdout.decode("utf-8", "replace")


def judge_change(
    diff: str, question: str, pass_mark: float | None, level: float, options: Mapping[str, Any]
) -> GateResult:
    """Have a council approve or reject a change, or grade it where there is a pass mark."""
    settings = {**options, "level": level}
    if pass_mark is None:
        settings["mode"] = "verdict"
    council = witan.Council.from_config(**settings)

    async def deliberate() -> "Session":
        async with council:
            if pass_mark is not None:
                return await council.judge(diff, question, pass_mark=pass_mark)
            return await council.ask(question, files={"change.diff": diff})

    session = wait_for(deliberate)
    decision, sentence = _decide(session, level)
    status = OVER_BUDGET if session.over_budget else STATUSES.get(decision, NO_VERDICT)
    report = session._repr_markdown_() or ""
    return GateResult(decision, sentence, report, status, session.id)


def _decide(session: "Session", level: float) -> tuple[str, str]:
    if (verdict := session.verdict) is not None:
        return verdict.decision or "no verdict", f"{verdict_sentence(verdict)}."
    closing, votes = session.synthesis, session.approval
    if session.opening.judging is not None or closing is None or votes is None:
        return "no verdict", "The council came to none."
    voted = votes.approve + votes.reject
    sentence = f"{votes.approve} of {voted} members approve"
    if votes.p_majority is None:
        return "too close to call", f"{sentence}."
    majority = "approval" if votes.is_approved else "rejection"
    sentence += f"; a majority for {majority} again with probability {votes.p_majority:.2f}"
    if votes.is_approved is not closing.approved:
        return "too close to call", f"{sentence}; {closing.chairman} does not follow it."
    if votes.p_majority < level:
        return "too close to call", f"{sentence}, {level:g} is needed."
    return "passed" if votes.is_approved else "failed", f"{sentence}."


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    event: dict[str, Any] = json.loads(Path(path).read_text("utf-8")) if path else {}
    return event


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The comments of a pull request, by GitHub's REST interface.

    Parameters
    ----------
    url
        Of the interface.
    """

    url: str
    repository: str
    number: int
    token: str

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> "PullRequest | None":
        """Find the pull request that a job runs for; None: there is none, or no token."""
        number = _event(environment).get("pull_request", {}).get("number")
        token, repository = environment.get("GITHUB_TOKEN"), environment.get("GITHUB_REPOSITORY")
        if not (isinstance(number, int) and token and repository):
            return None
        url = environment.get("GITHUB_API_URL") or "https://api.github.com"
        return cls(url, repository, number, token)

    def put_comment(self, marker: str, text: str) -> str | None:
        """Write the comment, or write it anew where it is; return why that failed, if it did."""
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
        except (httpx2.HTTPError, ValueError) as error:
            return f"GitHub cannot be reached: {type(error).__name__}"
        return None

    def _find_comment(self, client: Any, address: str, marker: str) -> int | None:
        """Find the comment with the marker; anybody could write one, so it has to be our own."""
        user = client.get(f"{self.url}/user")  # the token of a job has none, and writes as a bot
        login = user.json()["login"] if user.is_success else None
        for page in range(1, 31):
            query = {"per_page": 100, "page": page}
            comments = client.get(address, params=query).raise_for_status().json()
            for each in comments:
                author = each["user"]
                own = author["type"] == "Bot" if login is None else author["login"] == login
                if own and each["body"].startswith(marker):
                    number: int = each["id"]
                    return number
            if len(comments) < 100:
                break
        return None


def publish(result: GateResult, name: str, environment: Mapping[str, str]) -> None:
    """Show the result: on standard output, and in a job as summary, outputs and comment."""
    shown = f"{name}: {result.decision}\n\n{result.sentence}\n\n{result.report}\n"
    if environment.get("GITHUB_ACTIONS") != "true":
        echo(shown)
        return
    # A line of a model's text could be a command to the runner.
    word = token_hex(16)
    echo(f"::stop-commands::{word}\n{shown}\n::{word}::")
    marker = f"<!-- witan-gate: {name} -->"
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        _append(summary, f"### {name}: {result.decision}\n\n{result.sentence}\n\n{result.report}\n")
    if output := environment.get("GITHUB_OUTPUT"):
        _append(output, f"decision={result.decision}\nsession={result.session}\n")
    request = PullRequest.find(environment)
    if request is None:
        echo("::notice::no comment: there is no pull request, or no token")
    elif problem := request.put_comment(marker, result.comment(marker, name)):
        echo(f"::warning::no comment, the summary has the report: {problem}")


def _append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)


@click.command(context_settings={"auto_envvar_prefix": "GATE"})
@click.option("--staged", is_flag=True, help="Judge what is staged for the next commit.")
@click.option("--base", default="", metavar="REF", help="Judge what changed since this.")
@click.option("--question", default=QUESTION, help="What the council is asked of the change.")
@click.option(
    "--pass-mark",
    type=click.FloatRange(1, 10),
    help="Have a jury grade the change; this grade passes. Else members approve or reject.",
)
@click.option("--config", metavar="FILE.toml", help="Read this configuration.")
@click.option("--profile", default="", help="Seat the council of this profile.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="How sure a verdict has to be.",
)
@click.option("--max-cost", type=click.FloatRange(0), help="US dollars to spend.")
@click.option(
    "--most-bytes", type=click.IntRange(1), default=200_000, show_default=True,
    help="Judge no larger change.",
)  # fmt: skip
@click.option(
    "--too-close", type=click.Choice(["fail", "warn"]), default="fail", show_default=True,
    help="With warn, a verdict that is too close to call ends with 0.",
)  # fmt: skip
@click.option("--name", default="Witan", help="Name of the gate, where there are several.")
@click.argument("paths", nargs=-1)
def main(paths: tuple[str, ...], **options: Any) -> None:
    r"""Have a council judge a change, alone in PATHS if there are any.

    In a job of GitHub for a pull request, the change is that of the request, and its verdict stands
    in a comment, written anew each time. Options are also read from variables such as
    GATE_PASS_MARK.

    \b
    Exit status: 0 passed, 1 failed, 2 misuse, 3 no verdict, 4 over budget, 5 too close to call.
    """
    environment = os.environ
    if len(options["name"].splitlines()) != 1 or "-->" in options["name"]:
        raise click.UsageError("--name is one line, without -->")
    try:
        compared = find_range(options["base"], environment, staged=options["staged"])
        diff = read_diff(compared, paths, options["most_bytes"])
        if not diff.strip():
            echo("nothing changed, so nothing is judged")
            return
        settings = {"path": options["config"], "profile": options["profile"]}
        if options["max_cost"] is not None:
            settings["max_cost_usd"] = options["max_cost"]
        result = judge_change(
            diff, options["question"], options["pass_mark"], options["level"], settings
        )
    except witan.errors.OverBudget as error:
        echo(f"witan-gate: {error}", err=True)
        sys.exit(OVER_BUDGET)
    except (witan.errors.WitanError, click.ClickException) as error:
        words = error.message if isinstance(error, click.ClickException) else str(error)
        echo(f"witan-gate: {words}", err=True)
        sys.exit(2)
    publish(result, options["name"], environment)
    sys.exit(0 if result.status == 5 and options["too_close"] == "warn" else result.status)
