"""Blocks of code: coloured by classes, with a button that copies them."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from markdown_it.token import Token as Block
from markupsafe import Markup

from witan.surfaces.web.escaping import to_html, trusted_html

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LANGUAGES = frozenset(
    {
        "awk", "bash", "c", "c++", "c#", "clojure", "cmake", "console", "cpp", "cs", "csharp",
        "css", "dart", "diff", "docker", "dockerfile", "elixir", "erlang", "fortran", "fsharp",
        "go", "golang", "graphql", "haskell", "html", "ini", "java", "javascript", "js", "json",
        "jsx", "julia", "kotlin", "latex", "lisp", "lua", "matlab", "nginx", "nix", "objectivec",
        "ocaml", "pascal", "perl", "php", "postgresql", "powershell", "protobuf", "ps1", "py",
        "pycon", "python", "python3", "r", "rb", "rs", "ruby", "rust", "scala", "scheme", "scss",
        "sh", "shell", "sql", "swift", "tex", "toml", "ts", "tsx", "typescript", "vim", "xml",
        "yaml", "yml", "zig", "zsh",
    }
)  # fmt: skip
"""Names of languages that are coloured."""

MAX_CHARS, MAX_TEXT_CHARS = 6000, 24_000
"""Characters of code that are coloured, in a block and in a text: some code takes long."""

CLASSES = (
    ("Comment", "hl-comment"),
    ("Literal.String", "hl-string"),
    ("Literal.Number", "hl-number"),
    ("Keyword", "hl-keyword"),
    ("Operator.Word", "hl-keyword"),
    ("Name.Function", "hl-name"),
    ("Name.Class", "hl-name"),
    ("Name.Tag", "hl-keyword"),
    ("Name.Attribute", "hl-name"),
    ("Name.Decorator", "hl-name"),
    ("Name.Builtin", "hl-builtin"),
    ("Generic.Deleted", "hl-deleted"),
    ("Generic.Inserted", "hl-inserted"),
    ("Generic.Heading", "hl-name"),
    ("Generic.Subheading", "hl-name"),
    ("Generic.Prompt", "hl-comment"),
)
"""Kind of token, as Pygments calls it, to class; others have none."""


def write_code(_renderer: Any, tokens: list[Block], at: int, _options: Any, env: Any) -> str:
    """Write a block of code, with its language and copy button."""
    token = tokens[at]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    may_colour = len(token.content) <= min(MAX_CHARS, env.get("code_chars", 0))
    if may_colour:
        env["code_chars"] -= len(token.content)
    shown, code = to_html(language[:24]), highlight(token.content, language if may_colour else "")
    name = f"Code, {shown}" if shown else "Code"
    return (
        f'<div class="code"><p class="code-head"><span>{shown}</span>'
        '<button type="button" class="copy">Copy<span class="hear"> the code</span></button></p>'
        f'<pre tabindex="0" role="group" aria-label="{name}"><code>{code}</code></pre></div>\n'
    )


def highlight(code: str, language: str) -> Markup:
    """Colour code by classes; that of an unknown language stays plain."""
    lexer = _lexer(language.casefold())
    return to_html(code) if lexer is None else trusted_html("".join(_spans(lexer, code)))


def _lexer(language: str) -> "Lexer | None":
    """Return a new lexer, since one keeps a state while it reads."""
    if language not in LANGUAGES:
        return None
    from pygments.lexers import get_lexer_by_name

    lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return lexer


def _spans(lexer: "Lexer", code: str) -> Iterator[str]:
    """Yield runs of one class, escaped."""
    pieces = ((_class_of(str(kind)), text) for kind, text in lexer.get_tokens(code))
    for name, run in groupby(pieces, key=lambda piece: piece[0]):
        text = to_html("".join(text for _, text in run))
        yield f'<span class="{name}">{text}</span>' if name else text


def _class_of(kind: str) -> str:
    kind = kind.removeprefix("Token.")
    return next((name for prefix, name in CLASSES if kind.startswith(prefix)), "")
