"""Documentation as a test sees it: pages, their blocks, and a workspace in which these run.

A page is followed from top to bottom, as a reader would. A fenced block with ``title="name"`` is
a file of that name; a ``python`` block with prompts runs and must print what it shows, all blocks
of a page in one namespace; so must the ``$ witan`` commands of a ``console`` block, whose standard
output and standard error are shown together. ``…`` stands for any text.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witan.surfaces.cli.app import main

ROOT = Path(__file__).resolve().parents[1]

FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?[ ]*$')
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
OPTIONS = doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1
STATUS = "; echo $?"


def pages() -> list[Path]:
    """The README and every page, by name."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, the file it stands for if any, and where it begins."""

    language: str
    title: str | None
    text: str
    line: int

    @property
    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command of a console block with the output shown below it."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command.strip(), shown


def write_files(page: Path, folder: Path) -> None:
    """Write the blocks of a page that have a title to files of that name."""
    for block in blocks(page):
        if block.title is not None:
            file = folder / block.title
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text, encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page; one that is never closed is an error."""
    found: list[Block] = []
    opened: tuple[re.Match[str], int] | None = None
    held: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if opened is None:
            start = FENCE.match(line)
            if start is not None:
                opened, held = (start, number), []
            assert start is not None or not line.startswith("```"), f"{page}:{number}: {line}"
        elif line.rstrip() == "```":
            fence, begins = opened
            text = "".join(f"{one}\n" for one in held)
            found.append(Block(fence["language"], fence["title"], text, begins))
            opened = None
        else:
            held.append(line)
    assert opened is None, f"{page}:{opened and opened[1]}: the block is never closed"
    return found


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def links(page: Path) -> list[str]:
    """Where the links and images of a page lead, those to other sites left out."""
    targets = LINK.findall(prose(page))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def same(shown: str, printed: str) -> bool:
    """Whether a text reads as shown; line ends aside, `…` and `...` stand for anything."""
    want = _trimmed(shown).replace("…", "...")
    return doctest.OutputChecker().check_output(want, _trimmed(printed), OPTIONS)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@dataclass(slots=True)
class Workspace:
    """A folder that looks like the repository to whoever follows a page in it.

    Parameters
    ----------
    in_process
        Commands are calls in this process; else each is a process of its own, which sees the
        distributions that the page defines as installed.
    """

    folder: Path
    in_process: bool = True
    names: dict[str, Any] = field(default_factory=dict)
    n_examples: int = 0

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "examples", self.folder / "examples", dirs_exist_ok=True)

    def follow(self, page: Path) -> list[str]:
        """Run every block of the page in order; return what did not come out as shown."""
        problems: list[str] = []
        with contextlib.chdir(self.folder), _history_in(self.folder):
            for block in blocks(page):
                name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page.name
                problems += self.try_block(block, str(name))
        return problems

    def try_block(self, block: Block, page: str) -> list[str]:
        """Write the file, run the prompts or call the commands of one block."""
        where = f"{page}:{block.line}"
        if block.title is not None:
            self._write(block.title, block.text)
        elif block.language == "python":
            return self._run(block, where)
        elif block.language == "console":
            return self._call(block, where)
        return []

    def _write(self, title: str, text: str) -> None:
        target = self.folder / title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if target.name == "pyproject.toml":
            self._install(tomllib.loads(text)["project"])

    def _install(self, project: dict[str, Any]) -> None:
        """Put a distribution's metadata beside its modules, as an installer would."""
        about = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        about.mkdir()
        headers = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        (about / "METADATA").write_text(headers, encoding="utf-8")
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _run(self, block: Block, where: str) -> list[str]:
        """Run the prompts of a python block."""
        parsed = doctest.DocTestParser().get_examples(block.text)
        if not parsed:
            return [f"{where}: a python block without prompts never runs; give it a title"]
        problems: list[str] = []
        for example in parsed:
            self.n_examples += 1
            printed = _evaluated(example, self.names)
            if not same(example.want, printed):
                problems.append(_difference(where, example.source.strip(), example.want, printed))
        return problems

    def _call(self, block: Block, where: str) -> list[str]:
        """Run the commands of a console block."""
        problems = [] if block.text.startswith("$ ") else [f"{where}: begins with no command"]
        for command, shown in block.commands:
            self.n_examples += 1
            printed = self._printed(command)
            if not same(shown, printed):
                problems.append(_difference(where, command, shown, printed))
        return problems

    def _printed(self, command: str) -> str:
        """What a command says on both streams, and its exit status where that is asked for."""
        program, *arguments = shlex.split(command.removesuffix(STATUS))
        if program != "witan":
            return f"only witan can be run here, not {program}\n"
        call = _called if self.in_process else self._started
        status, said = call(arguments)
        return f"{said}{status}\n" if command.endswith(STATUS) else said

    def _started(self, arguments: list[str]) -> tuple[int, str]:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "witan", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout


@contextlib.contextmanager
def _history_in(folder: Path) -> Iterator[None]:
    """The default history of the page's own; its examples name any other that they use."""
    before = os.environ.get("WITAN_HISTORY")
    os.environ["WITAN_HISTORY"] = str(folder / "by-default.sqlite")
    try:
        yield
    finally:
        if before is None:
            del os.environ["WITAN_HISTORY"]
        else:
            os.environ["WITAN_HISTORY"] = before


def _called(arguments: list[str]) -> tuple[int, str]:
    said = io.BytesIO()
    stream = io.TextIOWrapper(said, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        status = int(main(arguments))
    stream.flush()
    return status, said.getvalue().decode()


def _evaluated(example: doctest.Example, names: dict[str, Any]) -> str:
    """What the interpreter prints for one example; an error as its last line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(example.source, "<page>", "single"), names)  # noqa: S102 - our own pages
        except Exception as error:  # noqa: BLE001 - whatever it is, the page must show it
            told = f"{_name(error)}: {error}"
            printed.write(f"Traceback (most recent call last):\n    ...\n{told}\n")
    return printed.getvalue()


def _name(error: Exception) -> str:
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _difference(where: str, ran: str, shown: str, printed: str) -> str:
    return f"{where}: {ran}\n--- shown\n{shown}--- printed\n{printed}"
