"""A server as a browser meets it: a council of scripts, and a history with something to read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from histories import ASKED, session_events
from scripts import write_script
from served import Served, served
from services import councils
from stored_ballots import NOW, jury, sessions, store_sessions
from witan.deliberation.session import Session
from witan.history import History, SessionImport

MARKUP = (
    "Cyd says so. <script>alert(1)</script> <img src=x onerror=alert(2)> "
    "[press](javascript:alert(3)) [press](data:text/html;base64,PHNjcmlwdD4=) "
    "![pixel](https://evil.example/pixel.png) <style>body{display:none}</style>"
)
"""What a member says that tries everything."""


RICH = r"""## What it takes

The sum $\sum_{i=1}^{n} i$ is \(\frac{n(n+1)}{2}\), for **all** $n \ge 1$.[^1]

\[
\begin{aligned} S &= 1 + 2 + \dots + n \\ 2S &= n(n+1) \end{aligned}
\]

```python
def total(n: int) -> int:
    "Sum the numbers up to n, which is a long line that goes on beyond the edge of any phone."
    return n * (n + 1) // 2  # exact
```

- [x] proved
- [ ] applied

| n | sum |
|--:|----:|
| 1 | 1 |
| 10 | 55 |

[^1]: By induction. <script>alert(1)</script>
"""
"""What a member writes with everything that models use."""

ARABIC = """## ما يلزم حفظه

احفظ **التاريخ والوقت المحليين** مع المنطقة `Africa/Cairo`، ثم احسب UTC من جديد.

1. التاريخ المحلي
2. اسم المنطقة (IANA)

> الموعد وعدٌ بساعةٍ على الحائط.

| الحقل | مثال |
|---|---|
| المنطقة | Africa/Cairo |

```python
when = "2027-03-29 09:00"  # local
```

In English: keep the zone, not the offset.
"""
"""What a member writes from right to left, with what stays from left to right."""


@dataclass(frozen=True, slots=True)
class Desk:
    """A running server, and the history that it keeps."""

    server: Served
    history: History

    @property
    def url(self) -> str:
        """Where it is."""
        return self.server.url


def write_desk(folder: Path) -> Path:
    """Write a council whose members do what the question says: write slowly, hang, or fail.

    By "(mute)" nobody answers, by "(stuck)" cyd never does; by "(hang)" nobody reviews, by
    "(open)" all but cyd do. Cyd writes slowest: a page can be seen before the answers are there.
    """
    order = ["Bob says", "Ada says", "Cyd says"]
    seats = []
    for name, speed in (("ada", 40), ("bob", 40), ("cyd", 12)):
        slowly = {"contains": "(slowly)", "tokens_per_second": speed, "seconds": 0.1}
        text = MARKUP if name == "cyd" else f"{name.title()} says so, **surely**."
        review = [
            {"contains": "(hang)", "hang": True},
            {"contains": "(slowly)", "prefers": order, "seconds": 0.2 * len(seats)},
        ]
        if name == "cyd":
            review.insert(0, {"contains": "(fail)", "error": "is overloaded", "status": 400})
            review.insert(0, {"contains": "(open)", "hang": True})
        path = write_script(
            folder / f"{name}.toml",
            answer=[
                {"contains": "(mute)", "error": "is overloaded", "status": 400},
                *([{"contains": "(stuck)", "hang": True}] if name == "cyd" else []),
                {"contains": "(rich)", "tokens_per_second": 150, "text": RICH + text},
                {"contains": "بالعربية", "text": f"{ARABIC}\n{text}"},
                {**slowly, "text": f"{text} {'and so on ' * 12}"},
                {"text": text},
            ],
            review=[*review, {"prefers": order}],
            synthesis=[
                {"contains": "(rich)", "tokens_per_second": 150, "text": RICH},
                {
                    "contains": "بالعربية",
                    "prefers": order,
                    "text": f"{ARABIC}\nكما في [{{1}}] لا [{{2}}].",
                },
                {"prefers": order, "text": "All told: so, as [{1}] has it, not [{2}]."},
            ],
        )
        seats.append(f'"script:{path}"')
    file = folder / "council.toml"
    file.write_text(f"members = [{', '.join(seats)}]\nchairman = {seats[0]}\n", encoding="utf-8")
    return file


def _history() -> Iterator[SessionImport]:
    """Sessions of two months as ballots, one of them with answers, and twelve that were held."""
    for each in sessions():
        texts = {"ash": "Ash it is.", "elm": "Elm, rather.", "oak": "Oak."}
        yield (
            replace(each, question="Which tree?", answers=texts) if each.session == "q00" else each
        )
    yield SessionImport("odd/name?#%", NOW - timedelta(days=90), ballots=jury("odd/name?#%"))
    for number in range(12):
        at = ASKED - timedelta(days=2 * number + 1)
        yield SessionImport(
            f"held{number:02}", session_record=Session.of(session_events(f"held{number:02}", at=at))
        )


@contextmanager
def desk(folder: Path, *, filled: bool = True) -> Iterator[Desk]:
    """Serve the council over a history, filled or empty."""
    place = folder / "history.sqlite"
    if filled:
        store_sessions(place, _history())
    with History.open(place) as history, served(councils(write_desk(folder), history)) as server:
        yield Desk(server, history)
