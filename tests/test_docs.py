"""The documentation is true: every example runs, and everything public is described."""

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

import witan
import witan.errors
import witan.events
import witan.files
import witan.models
import witan.reports
import witan.rules
import witan.safety
import witan.stats
from pages import ROOT, Workspace, anchors, blocks, links, pages, prose
from sizes import declared_and_found, history, ways_to_tell
from witan import RULES, Settings
from witan.core.ballot import FIELDS
from witan.files import FORMATS
from witan.files.ballots.columns import ALIASES
from witan.rules import Axiom
from witan.stats import Counting
from witan.surfaces.cli.app import cli

DOCS = ROOT / "docs"
RULE_PAGES = {path.stem: path for path in (DOCS / "rules").glob("*.md") if path.stem != "index"}
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
SUBJECTS = (
    witan.councils, witan.events, witan.files, witan.models, witan.reports, witan.rules,
    witan.safety, witan.stats,
)  # fmt: skip
OUR_RULES = [name for name, rule in RULES.items() if rule.compute.__module__.startswith("witan.")]
DATA = ("json", "toml", "text", "csv", "sh", "sql", "yaml")

VOCABULARY = """
question, session / model, member / chairman, synthesis / answer, reply / candidate / reviewer /
sheet, label / review / rubric, criterion, grade / ballot, group / recusal / abstention /
electorate, quorum / profile, margin / rule / score / rank, ranking / outcome / dead heat, tied /
tier / interval / rating, leaderboard / severity, bias / agreement /
concordance / match / reliability
"""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def rows_of(page: Path) -> list[list[str]]:
    """The cells of every table row of a page."""
    lines = re.findall(r"^\|(.*)\|$", prose(page), flags=re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def installs(page: Path) -> bool:
    """Whether a page's example is a package, which it installs."""
    return any(block.title == "pyproject.toml" for block in blocks(page))


class TestExamples:
    """Examples of pages print what is shown."""

    @pytest.mark.parametrize(
        "page",
        [
            # One page installs a package, which takes as long as all others.
            pytest.param(page, marks=pytest.mark.slow if installs(page) else ())
            for page in sorted(DOCS.rglob("*.md"))
            if blocks(page)
        ],
        ids=name_of,
    )
    def test_every_example_prints_what_is_shown(self, page, tmp_path):
        """Files, prompts and commands of a page run from top to bottom."""
        problems = Workspace(tmp_path, in_process=not installs(page)).follow(page)

        assert not problems, "\n\n".join(problems)

    def test_the_picture_of_the_tutorial_equals_the_drawn_chart(self, tmp_path):
        Workspace(tmp_path).follow(DOCS / "tutorials" / "judge-ballots.md")

        drawn = (tmp_path / "votes.svg").read_text(encoding="utf-8")
        assert drawn == (DOCS / "images" / "standings.svg").read_text(encoding="utf-8")

    def test_every_block_is_checked(self):
        """A block is python, console, a titled file, or plain text."""
        skipped = [
            f"{page}:{block.line}"
            for page in pages()
            for block in blocks(page)
            if block.language not in ("python", "console", *DATA)
            or (
                block.language == "text"
                and block.title is None
                and (">>> " in block.text or "$ witan" in block.text)
            )
        ]

        assert skipped == []

    @pytest.mark.parametrize("name", sorted({*OUR_RULES, "auto"}))
    def test_every_rule_page_counts_an_example_by_its_rule(self, name, tmp_path):
        """It has data of its own."""
        page = RULE_PAGES[name]
        code = "".join(block.text for block in blocks(page) if block.language == "python")
        workspace = Workspace(tmp_path)

        workspace.follow(page)

        assert workspace.n_examples >= 4
        assert f'"{name}"' in code or name == "auto"

    def test_a_wrong_block_is_detected(self, tmp_path):
        """It may be a file, a prompt, a command, or have no prompt."""
        page = DOCS / "index.md"
        wrong = tmp_path / "wrong.md"
        wrong.write_text(
            "```python\n>>> 1 + 1\n3\n```\n```python\n1 + 1\n```\n"
            "```console\n$ witan --version\nwitan 0\n$ rm x\n```\n",
            encoding="utf-8",
        )
        workspace = Workspace(tmp_path / "here")

        problems = [p for block in blocks(wrong) for p in workspace.try_block(block, name_of(page))]

        assert len(problems) == 4


class TestRulePages:
    """Each rule has a page that agrees with the registry."""

    def test_every_rule_has_a_page_and_every_page_a_rule(self):
        """Pages are those of the registered rules and of auto."""
        assert set(RULE_PAGES) == {*OUR_RULES, "auto"}

    @pytest.mark.parametrize("name", sorted(OUR_RULES))
    def test_every_rule_page_has_its_sections_parameters_and_defaults(self, name):
        text = RULE_PAGES[name].read_text(encoding="utf-8")

        for section in ("Formula", "By hand", "Ties and partial ballots", "Axioms", "Source"):
            assert f"\n## {section}\n" in text, section
        assert "## When to use it" in text
        for parameter, default in RULES[name].parameters.items():
            shown = f'"{default}"' if isinstance(default, str) else f"{default:g}"
            assert f"`{parameter}`" in text, parameter
            assert shown in text, (parameter, shown)

    def test_the_table_of_axioms_equals_the_registry(self):
        table = [row for row in rows_of(DOCS / "rules" / "index.md") if len(row) == 1 + len(Axiom)]
        axioms = [Axiom(name) for name in table[0][1:]]

        said = {
            row[0]: {axiom for axiom, mark in zip(axioms, row[1:], strict=True) if mark}
            for row in table
            if row[0] in OUR_RULES
        }

        assert said == {name: set(RULES[name].satisfies) for name in OUR_RULES}

    def test_the_decision_table_links_to_every_rule(self):
        targets = set(links(DOCS / "rules" / "index.md"))

        assert {f"{name}.md" for name in RULE_PAGES} <= targets


class TestCompleteness:
    """Everything public is documented."""

    @staticmethod
    def ticked(page: str) -> set[str]:
        return set(re.findall(r"`([^`\n]+)`", (DOCS / page).read_text(encoding="utf-8")))

    def test_every_error_is_documented_with_its_fields(self):
        """The table of errors has a row per class, with parent and fields."""
        rows = {row[0]: row for row in rows_of(DOCS / "python.md") if len(row) == 4}

        for name in witan.errors.__all__:
            kind = getattr(witan.errors, name)
            row = rows[f"`{name}`"]
            assert row[1] == f"`{kind.__bases__[-1].__name__}`"
            fields = [] if kind is witan.WitanError else inspect.signature(kind).parameters
            for argument in fields:
                assert f"`{argument}`" in row[3], (name, argument)

    @pytest.mark.parametrize("kind", [Settings, Counting])
    def test_every_setting_is_documented(self, kind):
        """Each field is a parameter of the reference, or has a row on the page about Python."""
        rows = {row[0].strip("`") for row in rows_of(DOCS / "python.md")}
        listed = (DOCS / "reference.md").read_text(encoding="utf-8").partition("## Types")[0]
        parameters = {*re.findall(r"^- `(\w+)`", listed, flags=re.MULTILINE)}

        assert {field.name for field in dataclasses.fields(kind)} <= rows | parameters

    def test_every_public_name_is_documented(self):
        """Names of `witan` and its subjects are on a page."""
        text = "".join(page.read_text(encoding="utf-8") for page in pages())
        names = [*witan.__all__, *(name for each in SUBJECTS for name in each.__all__)]

        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []

    def test_every_command_and_option_is_documented(self):
        """Each command has a section with its options, or their parameter is on some page."""
        text = (DOCS / "command-line.md").read_text(encoding="utf-8")
        named = {word for page in DOCS.glob("*.md") for word in self.ticked(page.name)}
        context = click.Context(cli)

        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            assert f"\n## witan {name}\n" in text
            for option in command.params:
                for word in option.opts if isinstance(option, click.Option) else ():
                    assert f"`{word}`" in text or option.name in named, (name, word)

    def test_every_exit_status_is_documented(self):
        """Each status of a run has a row."""
        rows = {row[0] for row in rows_of(DOCS / "command-line.md")}

        assert {"0", "1", "2", "3", "5"} <= rows

    def test_every_format_field_and_alias_is_documented(self):
        """They are on the page about files."""
        ticked = self.ticked("ballot-files.md")

        assert set(FORMATS) <= ticked
        assert set(FIELDS) <= ticked
        assert {alias for aliases in ALIASES.values() for alias in aliases} <= ticked

    def test_every_format_is_read_from_the_page(self):
        """Each format has a file, written by the page or by a command on it."""
        shown = "".join(block.text for block in blocks(DOCS / "ballot-files.md"))
        titles = {block.title for block in blocks(DOCS / "ballot-files.md") if block.title}

        assert {"ballots.jsonl", "long.csv", "pairs.csv", "votes.toi", "log.jsonl"} <= titles
        for title in {*titles, "ballots.parquet"}:
            assert f'"{title}"' in shown or f" {title}" in shown, title

    def test_every_flag_and_rubric_is_documented(self):
        """The safety flags and the named rubrics stand on their pages."""
        from witan.core.safety import FLAGS

        assert set(FLAGS) <= self.ticked("safety.md")
        rubrics = (DOCS / "rubric.md").read_text(encoding="utf-8")
        assert [name for name in witan.RUBRICS if name not in rubrics] == []

    def test_the_glossary_has_the_vocabulary(self):
        """Every word has a row with a meaning."""
        rows = {row[0]: row for row in rows_of(DOCS / "glossary.md")}

        for words in (part.strip() for part in VOCABULARY.replace("\n", " ").split("/")):
            assert words in rows
            assert len(rows[words][1]) > 10

    def test_a_decision_has_all_sections_on_one_page(self):
        """They are context, choice, consequences and reversal."""
        assert len(DECISIONS) >= 9
        assert len({page.name[:4] for page in DECISIONS}) == len(DECISIONS)
        for page in DECISIONS:
            text = page.read_text(encoding="utf-8")
            sections = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
            number = int(page.name[:4])
            assert text.startswith(f"# {number}. ")
            assert sections == ["Context", "Choice", "Consequences", "What would change our mind"]
            assert len(text.split()) < 600


class TestLinks:
    """All links resolve."""

    def test_internal_links_resolve(self):
        """Each link to a file finds it, and each anchor a heading."""
        broken = []
        for page in pages():
            for target in links(page):
                path, _, anchor = target.partition("#")
                found = (page.parent / path).resolve() if path else page
                if not found.exists() or (anchor and anchor not in anchors(found)):
                    broken.append(f"{page}: {target}")

        assert broken == []

    def test_every_module_on_the_architecture_page_exists(self):
        """Its paths are files or folders of the package."""
        text = (DOCS / "how-it-is-built.md").read_text(encoding="utf-8")
        named = [
            path
            for path in re.findall(r"`(\w+/[\w/]*(?:\.py)?)`", text)
            if not path.startswith("tests/")
        ]

        assert len(named) > 15
        assert [path for path in named if not (ROOT / "src" / "witan" / path).exists()] == []

    def test_the_site_has_every_page_once_and_loads_nothing_external(self):
        """The navigation names each page of docs/ once."""
        site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
        named = re.findall(r"'([^']+\.md)'", str(site["nav"]))

        assert sorted(named) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
        assert site["theme"]["font"] is False
        assert "://" not in str(site)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_row_of_a_table_has_as_many_cells_as_its_header(page):
    """And no text after them, which a renderer would drop."""
    n_cells, odd = 0, []
    for line in prose(page).splitlines():
        if not line.startswith("|"):
            n_cells = 0
            continue
        cells = re.sub(r"\\\||`[^`]*`", "", line.strip()).split("|")
        n_cells = n_cells or len(cells)
        odd += [line] if len(cells) != n_cells or cells[-1] else []

    assert odd == []


class TestFigures:
    """The table of sizes is measured in this test."""

    @pytest.mark.slow
    @pytest.mark.parametrize("reviewers", [3, 4, 5, 7])
    def test_the_table_of_sizes_equals_a_simulation(self, reviewers):
        """Each figure is within four standard errors of a new one."""
        rows: dict[str, list[str]] = {}
        for row in rows_of(DOCS / "benchmarks.md"):
            rows.setdefault(row[0], row[1:])  # our own tables come before the specification's
        column = {3: 0, 4: 1, 5: 2, 7: 3}[reviewers]
        prior = history(reviewers, np.random.default_rng(reviewers))
        rng = np.random.default_rng(reviewers + 100)

        for name, told in ways_to_tell(prior).items():
            said = [float(figure) for figure in rows[name][column].split(" · ")]
            sessions = 2_000 if name.startswith("P(best)") else 10_000
            shared = 0.3 if "ρ" in name else 0.0
            measured = declared_and_found(
                told, reviewers=reviewers, sessions=sessions, rng=rng, shared=shared
            )
            for figure, found in zip(said, measured, strict=False):
                share = min(max(figure, 1.0), 99.0) / 100
                error = 100 * np.sqrt(share * (1 - share) / sessions)
                assert abs(figure - found) <= 4 * error + 0.6, (name, figure, found)
