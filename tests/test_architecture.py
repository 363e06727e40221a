"""Properties of the whole package that ruff, mypy and import-linter cannot check."""

import ast
import functools
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

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
    return tuple(module for module in found if module in MODULES)


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a file, nested ones included."""
    return [n for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_imports_have_no_cycle():
    """Imports inside functions count."""
    graph = {name_of(path): imports(path) for path in FILES if path.name != "__init__.py"}

    assert set(graph) <= set(TopologicalSorter(graph).static_order())


def test_files_and_functions_are_short():
    """At most 800 lines, two folders deep; functions are as short as those of httpx and svcs.

    Without docstrings, 95 of 100 have at most 38 lines, and none more than 80.
    """
    files = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in FILES}
    bodies = {
        f"{name_of(path)}:{function.name}": body_lines(function)
        for path in FILES
        for function in functions(path)
    }

    assert {name: lines for name, lines in files.items() if lines > 800} == {}
    assert {name: lines for name, lines in bodies.items() if lines > 80} == {}
    assert sorted(bodies.values())[int(len(bodies) * 0.95)] <= 38
    assert max(len(path.relative_to(SOURCE).parts) for path in FILES) <= 3


def test_print_is_not_passed_as_a_function():
    """Ruff finds every call of `print`, but not this."""
    named = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Name) and node.id == "print"
    ]

    assert named == []


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


def test_every_broad_except_has_a_reason():
    """Each boundary has one ``except Exception`` with a comment."""
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


def documented(docstring: str) -> set[str]:
    """Names under ``Parameters`` in a docstring, or before a colon at the beginning of a line."""
    _, _, section = docstring.partition("\nParameters\n----------\n")
    lines = re.split(r"\n\n?[A-Z]\w+\n-{3,}", section)[0].split("\n")
    heads = [line.partition(" : ")[0] for line in lines if line and line[0] != " "]
    heads += re.findall(r"^((?:`\w+`, )*`\w+`): ", docstring, re.MULTILINE)
    return {name.strip().strip("*`") for head in heads for name in head.split(",")}


def arguments_of(node: ast.AST, classes: dict[str, ast.ClassDef]) -> set[str]:
    """Arguments of a function; of a class its fields and attributes, with those inherited."""
    if isinstance(node, ast.ClassDef):
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        names = {getattr(base, "id", getattr(base, "attr", "")) for base in bases} - {node.name}
        inner = [classes[name] for name in names & classes.keys()]
        inner += [n for n in node.body if getattr(n, "name", "") in ("__init__", "__new__")]
        fields = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute))
        fields |= {n.attr for n in stored if isinstance(n.ctx, ast.Store)}
        return fields.union(*(arguments_of(each, classes) for each in inner))
    return {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}


NO_NOUN = re.compile(
    "told|heard|held|kept|asked|given|said|met|taken|made|done|gone|got|hidden|lost|paid|shown"
    "|spoken|won|declared|running|wanted|voted|approved|listed|closed|ended|passed|revealed|veiled"
    "|recounted|reserved|imported|where|what|who|whose|which|how|whether|when"
)
"""Participles and questions that once were names of parameters."""


def test_documented_parameters_exist_and_are_nouns():
    """A docstring names parameters of its function, or fields of its class, and no others."""
    defined = [
        (path, node)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    classes = {node.name: node for _, node in defined if isinstance(node, ast.ClassDef)}
    unknown = [
        f"{name_of(path)}.{node.name}: {', '.join(sorted(names))}"
        for path, node in defined
        if (names := documented(ast.get_docstring(node) or "") - arguments_of(node, classes))
    ]
    no_nouns = [
        f"{name_of(path)}.{function.name}: {argument.arg}"
        for path in FILES
        for function in functions(path)
        for argument in ast.walk(function.args)
        if isinstance(argument, ast.arg) and NO_NOUN.fullmatch(argument.arg)
    ]

    assert (unknown, no_nouns) == ([], [])


def test_public_classes_have_different_names():
    """A search for a class finds one."""
    classes = [n.name for path in FILES for n in nodes(path) if isinstance(n, ast.ClassDef)]
    shared = {name for name, n in Counter(classes).items() if n > 1 and name[0] != "_"}

    assert not shared


def test_report_writers_name_existing_classes():
    """And every class that a notebook shows."""
    folder = SOURCE / "surfaces" / "report"
    [writers] = [
        ast.literal_eval(node.value)
        for node in nodes(folder / "__init__.py")
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_WRITERS"
    ]
    classes = {n.name: n for path in FILES for n in nodes(path) if isinstance(n, ast.ClassDef)}
    shown = {
        name for name, each in classes.items() if "NotebookDisplay" in map(ast.unparse, each.bases)
    }
    defined = {
        f"{path.stem}.{function.name}"
        for path in folder.glob("*.py")
        for function in functions(path)
    }

    assert (writers.keys() - classes, {*writers.values()} - defined) == (set(), set())
    assert shown <= writers.keys()


def test_the_root_has_few_names():
    """At most 40 names are at the root, each once, and the rest under its subjects."""
    assert len(set(witan.__all__)) == len(witan.__all__) <= 40
    assert [name for name in dir(witan) if getattr(witan, name) is None] == []
