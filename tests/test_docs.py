"""The documentation is true: every example runs, and nothing that can be used is left out."""

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
    """What a page shows is what happens."""

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
        """Followed from top to bottom, a page's files, prompts and commands come out as shown."""
        problems = Workspace(tmp_path, in_process=not installs(page)).follow(page)

        assert not problems, "\n\n".join(problems)

    def test_the_picture_of_a_tutorial_is_what_its_command_draws(self, tmp_path):
        """The tutorial on ballots shows the chart that it makes."""
        Workspace(tmp_path).follow(DOCS / "tutorials" / "judge-ballots.md")

        drawn = (tmp_path / "votes.svg").read_text(encoding="utf-8")
        assert drawn == (DOCS / "images" / "standings.svg").read_text(encoding="utf-8")

    def test_no_block_is_of_a_kind_that_would_be_skipped(self):
        """A block is python, console, a file by its title, or plain text that claims nothing."""
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
        """A rule's page runs its rule, with data of its own."""
        page = RULE_PAGES[name]
        code = "".join(block.text for block in blocks(page) if block.language == "python")
        workspace = Workspace(tmp_path)

        workspace.follow(page)

        assert workspace.n_examples >= 4
        assert f'"{name}"' in code or name == "auto"

    def test_a_block_that_prints_otherwise_is_noticed(self, tmp_path):
        """The checks above fail where a page is wrong: a file, a prompt, a command, no prompt."""
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
    """One page per rule, and what it says of the rule is what the registry says."""

    def test_every_rule_has_a_page_and_every_page_a_rule(self):
        """Pages are those of the registered rules and of auto."""
        assert set(RULE_PAGES) == {*OUR_RULES, "auto"}

    @pytest.mark.parametrize("name", sorted(OUR_RULES))
    def test_its_sections_parameters_and_defaults_are_there(self, name):
        """A page has its seven sections, and names each parameter with its default."""
        text = RULE_PAGES[name].read_text(encoding="utf-8")

        for section in ("Formula", "By hand", "Ties and partial ballots", "Axioms", "Source"):
            assert f"\n## {section}\n" in text, section
        assert "## When to use it" in text
        for parameter, default in RULES[name].parameters.items():
            shown = f'"{default}"' if isinstance(default, str) else f"{default:g}"
            assert f"`{parameter}`" in text, parameter
            assert shown in text, (parameter, shown)

    def test_the_table_of_axioms_is_the_registry_s(self):
        """A mark stands exactly where a rule claims the axiom."""
        table = [row for row in rows_of(DOCS / "rules" / "index.md") if len(row) == 1 + len(Axiom)]
        axioms = [Axiom(name) for name in table[0][1:]]

        said = {
            row[0]: {axiom for axiom, mark in zip(axioms, row[1:], strict=True) if mark}
            for row in table
            if row[0] in OUR_RULES
        }

        assert said == {name: set(RULES[name].satisfies) for name in OUR_RULES}

    def test_the_decision_table_leads_to_every_rule(self):
        """Which rule when: each page is linked from the table."""
        targets = set(links(DOCS / "rules" / "index.md"))

        assert {f"{name}.md" for name in RULE_PAGES} <= targets


class TestCompleteness:
    """What can be used is documented."""

    @staticmethod
    def ticked(page: str) -> set[str]:
        return set(re.findall(r"`([^`\n]+)`", (DOCS / page).read_text(encoding="utf-8")))

    def test_every_error_is_documented_with_its_fields(self):
        """The table of errors has a row per class, with the parent and the fields it keeps."""
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
        """Whatever `witan` and its subjects offer is named on a page."""
        text = "".join(page.read_text(encoding="utf-8") for page in pages())
        names = [*witan.__all__, *(name for each in SUBJECTS for name in each.__all__)]

        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []

    def test_every_command_and_option_is_documented(self):
        """Each command has a section; an option stands there, or its parameter on some page."""
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
        """Each status a run may end with on its own has a row."""
        rows = {row[0] for row in rows_of(DOCS / "command-line.md")}

        assert {"0", "1", "2", "3", "5"} <= rows

    def test_every_format_field_and_alias_is_documented(self):
        """Formats, fields of a record and names of columns are on the page about files."""
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
        """Every word of the house has a row with a meaning."""
        rows = {row[0]: row for row in rows_of(DOCS / "glossary.md")}

        for words in (part.strip() for part in VOCABULARY.replace("\n", " ").split("/")):
            assert words in rows
            assert len(rows[words][1]) > 10

    def test_a_decision_fits_its_form(self):
        """Context, choice, consequences, and what would change our mind, on a page."""
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
    """Nothing leads nowhere."""

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

    def test_every_module_on_the_page_about_the_house_exists(self):
        """Whoever follows a path of the page finds a file or a folder of the package."""
        text = (DOCS / "how-it-is-built.md").read_text(encoding="utf-8")
        named = [
            path
            for path in re.findall(r"`(\w+/[\w/]*(?:\.py)?)`", text)
            if not path.startswith("tests/")
        ]

        assert len(named) > 15
        assert [path for path in named if not (ROOT / "src" / "witan" / path).exists()] == []

    def test_the_site_has_every_page_once_and_asks_nobody_else(self):
        """The navigation names each page of docs/ once; fonts and scripts stay at home."""
        site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
        named = re.findall(r"'([^']+\.md)'", str(site["nav"]))

        assert sorted(named) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
        assert site["theme"]["font"] is False
        assert "://" not in str(site)


class TestFigures:
    """The table of sizes is measured, here and now."""

    @pytest.mark.slow
    @pytest.mark.parametrize("reviewers", [3, 4, 5, 7])
    def test_the_table_of_sizes_is_what_simulation_gives(self, reviewers):
        """Each figure lies within four standard errors of a fresh simulation."""
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
