"""Imports go one way, functions stay short, and importing the package is cheap."""

import ast
import functools
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import witan

SOURCE = Path(__file__).parents[1] / "src" / "witan"
FILES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


MODULES = {name_of(path) for path in FILES}


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a file."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module of ours that a file imports, hidden in a function or not."""
    found = []
    skipped = set()
    for node in nodes(path):
        if is_type_checking(node):
            skipped.update(id(child) for child in ast.walk(node))
    for node in nodes(path):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append(inner if inner in MODULES else node.module)
    return tuple(module for module in found if module.split(".")[0] == "witan")


def roots(path: Path) -> set[str]:
    """Top-level packages that a file imports."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a file, nested ones included."""
    return [n for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


class TestDirection:
    """What the layers of `lint-imports` leave open."""

    def test_there_is_no_cycle(self):
        """No module imports itself through others."""
        graph = {name_of(path): imports(path) for path in FILES if path.name != "__init__.py"}
        done: set[str] = set()

        def walk(module: str, trail: tuple[str, ...]) -> None:
            assert module not in trail, " → ".join([*trail, module])
            if module in done or module not in graph:
                return
            for imported in graph[module]:
                walk(imported, (*trail, module))
            done.add(module)

        for module in graph:
            walk(module, ())

        assert done == set(graph)

    def test_bridges_use_public_names_alone(self):
        """A bridge imports `witan` and its subjects, as any other package would."""
        public = {"witan", "witan.bridges", *(f"witan.{name}" for name in witan.__dir__())}

        inner = [
            f"{name_of(path)} imports {module}"
            for path in (SOURCE / "bridges").rglob("*.py")
            for module in imports(path)
            if module not in public and not module.startswith("witan.bridges.")
        ]

        assert inner == []

    def test_core_knows_no_world(self):
        """`core` imports the standard library's pure parts, numpy and scipy alone."""
        allowed = {
            "abc", "bisect", "collections", "contextlib", "dataclasses", "datetime", "difflib",
            "enum", "functools", "hashlib", "heapq", "importlib", "inspect", "itertools", "json",
            "math", "numbers", "numpy", "operator", "re", "scipy", "string", "types", "typing",
            "unicodedata", "witan", "zlib",
        }  # fmt: skip

        foreign = [
            f"{name_of(path)} imports {root}"
            for path in (SOURCE / "core").rglob("*.py")
            for root in roots(path)
            if root not in allowed
        ]

        assert foreign == []


class TestSize:
    """Functions fit a screen, and folders stay flat."""

    def test_no_file_is_longer_than_800_lines(self):
        """A file above 800 lines holds more than one subject."""
        lengths = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in FILES}

        assert {name: lines for name, lines in lengths.items() if lines > 800} == {}

    def test_functions_are_as_short_as_those_of_httpx_and_svcs(self):
        """Without docstrings, 95 of 100 functions have at most 38 lines, and none more than 80."""
        lengths = {
            f"{name_of(path)}:{function.name}": body_lines(function)
            for path in FILES
            for function in functions(path)
        }

        assert {name: lines for name, lines in lengths.items() if lines > 80} == {}
        assert sorted(lengths.values())[int(len(lengths) * 0.95)] <= 38

    def test_two_folders_below_the_root(self):
        """No module lies deeper than two folders below the package."""
        assert max(len(path.relative_to(SOURCE).parts) for path in FILES) <= 3


GATES = {
    "print": {"witan.surfaces.terminal"},
    "click": {"witan.surfaces.terminal"},
    "rich": {"witan.surfaces.terminal"},
    "stream": {
        "witan.surfaces.terminal",
        "witan.surfaces.cli.app",  # opens closed streams, escapes what they cannot encode
        "witan.surfaces.http.observers",  # hands standard error to the formatters of the log
        "witan.surfaces.mcp.server",  # standard output carries the protocol, which is JSON
        "witan.files.ballots",  # standard output stands for a file
    },
    "logging": {"witan.surfaces.terminal", "witan.surfaces.http.observers"},
    "csv": {"witan.files.ballots.columns"},
    "markupsafe": {"witan.surfaces.web.escaping"},
    "jinja2": {
        "witan.surfaces.web.rendering",
        "witan.surfaces.cli.serve",  # asks whether it is installed
    },
    "html": {
        "witan.surfaces.notebook",
        "witan.surfaces.report.drawing",
    },
    "resvg_py": {"witan.surfaces.report.chart_files"},
}
"""A way out of the program to the modules that alone may use it."""

SHOWS = {
    "click": {
        "clear", "confirm", "echo", "echo_via_pager", "edit", "pause", "progressbar", "prompt",
        "secho", "style",
    },
    "rich": {"Console", "Markup", "Text", "get_console", "inspect", "print", "print_json"},
    "csv": {"DictWriter", "writer"},
    "html": {"escape"},
    "jinja2": {"Environment", "Template"},
    "markupsafe": {"escape", "escape_silent"},
    "logging": {
        "BufferingFormatter", "FileHandler", "Formatter", "StreamHandler", "basicConfig",
        "lastResort",
    },
}  # fmt: skip
"""Names by which a library writes, or is handed texts to write."""

STREAMS = {"stdout", "stderr"}

WHOLE = ("rich", "jinja2", "markupsafe", "resvg_py")
"""Libraries of which a module that imports them whole may use anything."""

LOOKS = {"isatty", "encoding", "fileno", "flush"}
"""What is asked of a stream without writing to it."""


@functools.cache
def ways_out(path: Path) -> set[tuple[str, int]]:
    """Every way out of the program that a file uses, by its line; types do not count."""
    parents = {id(child): node for node in nodes(path) for child in ast.iter_child_nodes(node)}
    typed = {
        id(inner) for node in nodes(path) if is_type_checking(node) for inner in ast.walk(node)
    }
    return {
        (way, node.lineno)
        for node in nodes(path)
        if id(node) not in typed
        for way in (way_of(node, parents.get(id(node))),)
        if way
    }


def way_of(node: ast.AST, parent: ast.AST | None) -> str | None:  # noqa: PLR0911 - a way each
    """The way out that one node takes, if any."""
    match node:
        case ast.Name(id="print"):
            return "print"
        case ast.Attribute(value=ast.Name(id="click" | "csv" | "logging" as library), attr=name):
            return library if name in SHOWS[library] else None
        case ast.Attribute(value=ast.Name(id="os"), attr="write"):
            return "stream"
        case ast.Call(func=ast.Name(id="Markup")):
            return "markupsafe"
        case ast.Import(names=names):
            roots = {alias.name.partition(".")[0] for alias in names}
            return next((way for way in WHOLE if way in roots), None)
        case ast.Attribute(value=ast.Name(id="sys"), attr=name):
            return "stream" if name.strip("_") in STREAMS and not looks(parent) else None
        case ast.ImportFrom(module=module, names=names) if module:
            library, taken = module.partition(".")[0], {alias.name for alias in names}
            if library == "sys":
                return "stream" if taken & STREAMS else None
            return library if taken & SHOWS.get(library, set()) else None
        case _:
            return None


def looks(parent: ast.AST | None) -> bool:
    """Whether a stream is only looked at: asked what it is, or for a page as wide as it."""
    match parent:
        case ast.Attribute(attr=name):
            return name in LOOKS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="Page"), attr="of")):
            return True
        case _:
            return False


class TestGates:
    """Text that someone else wrote goes out through one function per destination."""

    def test_only_its_gate_takes_a_way_out(self):
        """Nothing but the gate writes to the terminal, the log, a table, a page or a chart."""
        taken = [
            f"{name_of(path)}:{line} {way}"
            for path in FILES
            for way, line in sorted(ways_out(path))
            if name_of(path) not in GATES[way]
        ]

        assert taken == []

    def test_a_new_way_out_is_seen(self, tmp_path):
        """A renderer that goes around the gate is found, however it imports what it writes with."""
        renderers = [
            ("print(name)", "print"),
            ("show = print", "print"),
            ("import click; click.secho(name)", "click"),
            ("from click import echo", "click"),
            ("from rich.text import Text", "rich"),
            ("import rich.console", "rich"),
            ("import os; os.write(1, name)", "stream"),
            ("import sys; sys.stdout.write(name)", "stream"),
            ("import sys; out = sys.stderr", "stream"),
            ("from sys import stdout", "stream"),
            ("import logging; logging.StreamHandler()", "logging"),
            ("from logging import Formatter", "logging"),
            ("import csv; csv.DictWriter(file, names)", "csv"),
            ("from csv import writer", "csv"),
            ("from markupsafe import Markup; Markup(name)", "markupsafe"),
            ("from markupsafe import escape", "markupsafe"),
            ("from jinja2 import Template", "jinja2"),
            ("import resvg_py", "resvg_py"),
        ]
        for number, (line, way) in enumerate(renderers):
            file = tmp_path / f"renderer{number}.py"
            file.write_text(line, encoding="utf-8")

            assert way in {used for used, _ in ways_out(file)}, line


CATCHES_ALL = {
    "bridges/gate.py",  # a gate, whose exit status 1 is a verdict
    "service/sessions/running.py",  # requests, tools and sessions of a server
    "deliberation/calls.py",  # a model, which may be anybody's code
    "deliberation/council.py",  # a session in a task of its own, raised to the reader of its events
    "history/writer.py",  # the thread that writes every session
    "surfaces/notebook.py",  # a notebook that takes no picture
    "surfaces/web/markdown.py",  # a formula that anybody may have written, and what reads it
}
"""A module to what runs within its one broad clause."""


def documented(docstring: str) -> set[str]:
    """Names under ``Parameters`` in a docstring."""
    _, _, section = docstring.partition("\nParameters\n----------\n")
    lines = re.split(r"\n\n?[A-Z]\w+\n-{3,}", section)[0].split("\n")
    heads = [line.partition(" : ")[0] for line in lines if line and line[0] != " "]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def arguments_of(node: ast.AST, classes: dict[str, ast.ClassDef]) -> set[str]:
    """Arguments of a function; of a class its fields, those of `__init__`, and those inherited."""
    if isinstance(node, ast.ClassDef):
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        names = {getattr(base, "id", getattr(base, "attr", "")) for base in bases} - {node.name}
        inner = [classes[name] for name in names & classes.keys()]
        inner += [n for n in node.body if getattr(n, "name", "") in ("__init__", "__new__")]
        fields = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
        return fields.union(*(arguments_of(each, classes) for each in inner))
    return {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}


def test_every_documented_parameter_exists():
    """A docstring names the parameters of its function, or the fields of its class."""
    classes = {n.name: n for path in FILES for n in nodes(path) if isinstance(n, ast.ClassDef)}
    wrong = [
        f"{name_of(path)}.{node.name}: {', '.join(sorted(unknown))}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if (unknown := documented(ast.get_docstring(node) or "") - arguments_of(node, classes))
    ]

    assert wrong == []


NO_NOUN = re.compile(
    "told|heard|held|kept|asked|given|said|met|taken|made|done|gone|got|hidden|lost|paid|shown"
    "|spoken|won|declared|running|wanted|voted|approved|listed|closed|ended|passed|revealed|veiled"
    "|recounted|reserved|imported|where|what|who|whose|which|how|whether|when"
)
"""Participles and questions that once were names of parameters."""


def test_a_parameter_is_named_by_a_noun():
    """No parameter bears one of the names that made readers ask what it is."""
    named = {
        f"{name_of(path)}: {argument.arg}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in ast.walk(node.args)
        if isinstance(argument, ast.arg) and NO_NOUN.fullmatch(argument.arg)
    }

    assert named == set()


def test_who_catches_everything_says_why():
    """One ``except Exception`` stands at each boundary, with its reason beside it."""
    broad = re.compile(
        r"\s*except( \(?([\w, ]+, )?(Base)?Exception\b|:)|.*suppress\((Base)?Exception\b"
    )
    clauses = [
        (path.relative_to(SOURCE).as_posix(), line)
        for path in FILES
        for line in path.read_text(encoding="utf-8").splitlines()
        if broad.match(line)
    ]

    assert sorted(where for where, _ in clauses) == sorted(CATCHES_ALL)
    assert [where for where, line in clauses if "#" not in line] == []


class TestPublicSurface:
    """What ``import witan`` offers."""

    def test_every_public_name_can_be_imported(self):
        """Each name in __all__ resolves, and the star import works."""
        import witan

        assert [getattr(witan, name) for name in witan.__all__]

    def test_a_reader_can_take_the_root_in_at_a_glance(self):
        """At most 40 names stand at the root, each of its own, and the rest under its subjects."""
        import witan

        assert len(set(witan.__all__)) == len(witan.__all__) <= 40
        for name in dir(witan):
            assert getattr(witan, name) is not None

    def test_an_unknown_name_is_an_attribute_error(self):
        """A misspelt name fails as it would in any module."""
        import witan

        with pytest.raises(AttributeError, match="tallly"):
            _ = witan.tallly

    @pytest.mark.parametrize("module", ["witan", "witan.bridges.pytest_plugin"])
    def test_importing_the_package_loads_nothing_heavy(self, module):
        """Nor does its plugin, which pytest imports wherever Witan is installed."""
        code = (
            f"import sys, {module}; print([m for m in ('numpy', 'scipy', 'pydantic', 'rich',"
            " 'click', 'anyio', 'httpx2', 'aiohttp', 'pydantic_ai') if m in sys.modules])"
        )

        run = subprocess.run(  # noqa: S603 - our own interpreter on our own line
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )

        assert run.stdout.strip() == "[]"


def test_no_two_public_classes_share_a_name():
    """Whoever searches for a class finds one."""
    classes = [n.name for path in FILES for n in nodes(path) if isinstance(n, ast.ClassDef)]
    shared = {name for name, n in Counter(classes).items() if n > 1 and name[0] != "_"}

    assert not shared


def test_no_two_test_files_share_a_name():
    """Pytest imports tests by their file name alone: a second one of a name is not collected."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))

    assert [name for name, files in names.items() if files > 1] == []
