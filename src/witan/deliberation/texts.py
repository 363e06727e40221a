"""Texts of answers: masked names, identical answers, and citations."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from witan.core.ballot import Ballot, shown_pair
from witan.deliberation.ports import TEXT, Member, Seat

MODEL, VENDOR = "[model]", "[vendor]"

_START, _END = r"(?<![\w-])", r"(?!\w)"

_TAIL = r"(?:[-:.]\w{1,20}){0,8}"
"""Endings of full names: -mini, -2024-08-06, .1, :8b."""

_TIER = r"(?: (?:mini|nano|turbo|pro|plus|max|lite|flash|fast|ultra|high|instruct|preview)\b){0,3}"


@dataclass(frozen=True, slots=True)
class _Name:
    """A name without another meaning; each match contains one of `words`."""

    words: tuple[str, ...]
    mask: str
    pattern: re.Pattern[str]


def _name(words: str, mask: str, pattern: str) -> _Name:
    full_pattern = re.compile(f"{_START}(?:{pattern}){_END}", re.IGNORECASE)
    return _Name(tuple(words.split()), mask, full_pattern)


_NAMES = (
    _name("chatgpt", MODEL, f"ChatGPT(?:[- ]?[345]o?{_TAIL})?{_TIER}"),
    _name("gpt", MODEL, rf"GPT(?:[- ]?\dv?o?|-oss){_TAIL}{_TIER}"),
    _name("o1 o3 o4", MODEL, "o[134]-(?:mini|preview|pro)"),
    _name("claude", MODEL, rf"Claude[- ]?v?[1-9](?:\.\d)?{_TAIL}(?: (?:Opus|Sonnet|Haiku)\b)?"),
    _name("claude", MODEL, rf"Claude[- ](?:Opus|Sonnet|Haiku)(?:[- ]\d(?:\.\d)?\b)?{_TAIL}"),
    _name("sonnet opus haiku", MODEL, r"(?:Sonnet|Opus|Haiku)[- ][345]\.\d"),
    # Gemini 4 flew in 1965; only with a tier or a decimal is it a model.
    _name(
        "gemini", MODEL, rf"Gemini[- ](?:\d(?:\.\d)?[- ])?(?:Pro|Flash|Ultra|Nano)\b{_TAIL}{_TIER}"
    ),
    _name("gemini", MODEL, rf"Gemini[- ]\d\.\d{_TAIL}"),
    _name("llama", MODEL, rf"(?:(?-i:Llama|LLaMA)[- ]?[1-9]|Llama-?[1-9]|Code ?Llama){_TAIL}"),
    _name("grok", MODEL, f"Grok[- ]?[1-9]{_TAIL}{_TIER}"),
    _name("mistral", MODEL, rf"Mistral[- ](?:Large|Medium|Small|Nemo|\d{{1,3}}B)\b{_TAIL}"),
    _name("mixtral", MODEL, f"Mixtral{_TAIL}"),
    _name("codestral ministral devstral", MODEL, f"(?:Code|Mini|Dev)stral{_TAIL}"),
    _name("deepseek", MODEL, rf"DeepSeek[- ]?(?:[VR]\d|Chat\b|Coder\b|Reasoner\b){_TAIL}"),
    _name("qwen qwq", MODEL, rf"(?:Qwen[- ]?\d?|QwQ){_TAIL}{_TIER}"),
    _name("kimi", MODEL, rf"Kimi[- ]K\d{_TAIL}"),
    _name("gemma", MODEL, f"Gemma[- ]?[1-9]{_TAIL}"),
    _name("amazon", MODEL, r"Amazon Nova(?: (?:Pro|Lite|Micro|Premier)\b)?"),
    _name("command", MODEL, rf"Command(?: R\+|-r-plus{_TAIL})"),
    _name("openai", VENDOR, "OpenAI"),
    # Cosmology has an anthropic principle.
    _name("anthropic", VENDOR, "(?-i:Anthropic)(?! (?:principle|reasoning|argument|bias))"),
    _name("deepseek", VENDOR, "DeepSeek"),
    # XAI is explainable AI.
    _name("xai", VENDOR, "(?-i:xAI)"),
    _name("mistral", VENDOR, "Mistral AI"),
    _name("moonshot", VENDOR, "Moonshot AI"),
    _name("zhipu", VENDOR, "Zhipu AI"),
    _name("deepmind", VENDOR, "(?:Google )?DeepMind"),
    _name("meta", VENDOR, "(?-i:Meta AI)"),
)

_NAME_WORDS = tuple(dict.fromkeys(word for name in _NAMES for word in name.words))

_MODEL_WORDS = (
    "Bard", "Claude", "Command", "Copilot", "Ernie", "Falcon", "GLM", "GPT", "Gemini", "Gemma",
    "Granite", "Grok", "Haiku", "Jamba", "Kimi", "Llama", "Mistral", "Nova", "Opus", "Phi",
    "Sonnet",
)  # fmt: skip
_VENDOR_WORDS = (
    "Alibaba", "Amazon", "Baidu", "ByteDance", "Cohere", "Databricks", "Google", "IBM", "Meta",
    "Microsoft", "Mistral", "NVIDIA", "Perplexity", "Tencent",
)  # fmt: skip

_I_AM = r"I(?: am|['’]m)"
_ADJECTIVES = r"(?: (?:[\w'’-]{1,20}|\[model\])){0,8}?"
_MAKER_VERBS = r"(?:made|built|created|developed|designed|trained|produced|released|provided)"


def masked_names(council: Iterable[Member | Seat]) -> tuple[str, ...]:
    """Return the names of these seats and of their models, to mask."""
    seats = [seat for seat in council if seat.provider != TEXT]
    models = [_model_in(seat.source) for seat in seats if not seat.simulated]
    return tuple(dict.fromkeys(n for n in (*models, *(seat.name for seat in seats)) if n))


def _model_in(source: str) -> str:
    """Return the model of a source, without its server or provider."""
    server, _, model = source.rpartition("#")
    if "://" in server:
        return model
    provider, _, model = source.partition(":")
    return "" if provider in ("cmd", "script") else model


def mask(text: str, question: str, names: Sequence[str]) -> str:
    """Mask everything in a text that reveals its author.

    `names` are those of the council's models. Masking a masked text changes nothing.
    """
    question_words, lower = question.casefold(), text.casefold().replace("ı", "i")
    present = {word for word in _NAME_WORDS if word in lower}
    for name in _NAMES if present else ():
        if not present.isdisjoint(name.words) and not _occurs_in(name.words, question_words):
            text = name.pattern.sub(name.mask, text)
    unique, words, ambiguous = _own_names(tuple(names))
    for own_name, pieces, pattern in unique:
        if all(map(lower.__contains__, pieces)) and not _occurs_in((own_name,), question_words):
            text = pattern.sub(MODEL, text)
    if ambiguous.search(text) is None:
        return text  # most answers name no model, and the full search is slow
    words_here = [word for word in (*_MODEL_WORDS, *words, *_VENDOR_WORDS) if word in text]
    if all(_occurs_in((word,), question_words) for word in words_here):
        return text
    models = tuple(
        word for word in (*_MODEL_WORDS, *words) if not _occurs_in((word,), question_words)
    )
    vendors = tuple(word for word in _VENDOR_WORDS if not _occurs_in((word,), question_words))
    of_model, of_vendor = _self_reference(models, vendors)
    text = of_model.sub(rf"\g<lead>{MODEL}", text)
    return of_vendor.sub(rf"\g<lead>{VENDOR}", text)


def _occurs_in(words: Sequence[str], question: str) -> bool:
    """Return true if the question contains one of the words.

    GPT4 contains GPT; metadata does not contain Meta.
    """
    return any(
        word.casefold() in question
        and re.search(rf"(?<![^\W\d_]){re.escape(word.casefold())}(?![^\W\d_])", question)
        for word in words
    )


@lru_cache(maxsize=64)
def _own_names(
    names: tuple[str, ...],
) -> tuple[
    tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...], tuple[str, ...], re.Pattern[str]
]:
    """Split the council's names into unmistakable ones and common words.

    The former come with the words that all their matches contain, for a quick search. Last is the
    pattern of all common words that name a model or vendor, the council's or another.
    """
    unique, words = [], []
    for name in dict.fromkeys(part for each in names for part in _parts(each)):
        if len(name) >= 4 and re.search(r"\d", name):
            parts = re.split(r"[-_\s]+", name)
            spelled = r"[-_ ]?".join(map(re.escape, parts))
            pattern = re.compile(f"{_START}{spelled}{_TAIL}{_END}", re.IGNORECASE)
            pieces = tuple(part.casefold().replace("ı", "i") for part in parts)
            unique.append((name, pieces, pattern))
        else:
            words.append(name)
    ambiguous = "|".join(map(re.escape, (*_MODEL_WORDS, *words, *_VENDOR_WORDS)))
    return tuple(unique), tuple(words), re.compile(ambiguous)


def _parts(name: str) -> Iterator[str]:
    for part in (name.strip(), re.split(r"[/#]", name)[-1].strip()):
        if re.search(r"[^\W\d_]", part):
            yield part


@lru_cache(maxsize=64)
def _self_reference(
    models: tuple[str, ...], vendors: tuple[str, ...]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a text that names its own model or vendor."""
    model, vendor = _any_of(models), _any_of(vendors)
    subject = rf"(?:{vendor}(?:['’]s)? )?{model}(?: R\+?| \d(?:\.\d)?)?{_END}"
    by_name = (
        rf"(?:{_I_AM}(?: called| named)?|my name is|call me) (?={subject}(?!(?-i: [A-Z][a-z])))"
    )
    by_role = rf"as (?:an AI(?: assistant| model)?,? )?(?={subject},? (?:I\b|my\b|an? ))"
    by_kind = rf"(?:{_I_AM}|as) an?{_ADJECTIVES} (?:named|called|known as) "
    of_model = rf"\b(?P<lead>{by_name}|{by_role}|{by_kind}|I, (?={subject},)){subject}"
    maker_clause = rf"{_MAKER_VERBS}(?: and {_MAKER_VERBS})? by (?:the \w{{1,20}} (?:at|of) )?"
    kind = rf"an?{_ADJECTIVES} (?:AI|model|assistant|chatbot){_ADJECTIVES}"
    i_was = (
        rf"I(?: am|['’]m| was|['’]ve been| have been)(?: \[model\])?,?"
        rf"(?: an?{_ADJECTIVES})?,?(?: and)?(?: that| who| which)?(?: was| is)? {maker_clause}"
    )
    as_made = rf"as {kind},? {maker_clause}(?={vendor}{_END},? (?:I\b|my\b))"
    makers = r"my (?:developers?|creators?|makers?|trainers?|training)(?:,| at| is| are| by) "
    owner = rf"(?:{_I_AM}|as) (?={vendor}(?:['’]s)? \[model\])"
    of_vendor = rf"\b(?P<lead>{i_was}|{as_made}|{makers}|{owner}){vendor}{_END}"
    return re.compile(of_model, re.IGNORECASE), re.compile(of_vendor, re.IGNORECASE)


def _any_of(words: Sequence[str]) -> str:
    return f"(?-i:{'|'.join(re.escape(word) for word in words)})" if words else r"(?!)"


def group_duplicates(texts: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Group candidates with the same answer, ignoring trailing and outer white space.

    Indentation counts: it changes what a program does.
    """
    groups: dict[str, list[str]] = {}
    for candidate, text in texts.items():
        groups.setdefault(_strip_lines(text), []).append(candidate)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def are_identical(texts: Mapping[str, str]) -> bool:
    """True if all answers are equal and need no review."""
    stripped = map(_strip_lines, texts.values())
    first = next(stripped, None)
    return len(texts) > 1 and all(lines == first for lines in stripped)


def _strip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Groups of identical answers, each represented by its first on sheets."""

    groups: tuple[tuple[str, ...], ...] = ()

    def representatives(self, candidates: Collection[str]) -> list[str]:
        """Candidates on sheets."""
        others = {candidate for group in self.groups for candidate in group[1:]}
        return [candidate for candidate in candidates if candidate not in others]

    def with_duplicates(self, candidates: Collection[str]) -> tuple[str, ...]:
        """Candidates and all their duplicates."""
        if not self.groups:
            return tuple(dict.fromkeys(candidates))
        candidates_and_duplicates = {
            c for group in self.groups if not {*group}.isdisjoint(candidates) for c in group
        }
        return tuple(dict.fromkeys((*candidates, *sorted(candidates_and_duplicates))))

    def expand(self, ballot: Ballot, own_candidates: Collection[str]) -> Ballot:
        """Give every duplicate the place and grades of its representative.

        A reviewer that wrote one answer of a group judges none of the group.
        """
        if not self.groups:
            return ballot
        others = {group[0]: group[1:] for group in self.groups}
        ranking = tuple(
            tuple(each for name in place for each in (name, *others.get(name, ())))
            for place in ballot.groups
        )
        grades, positions = dict(ballot.grades or {}), dict(ballot.positions or {})
        for first, rest in others.items():
            if first in grades:
                grades |= dict.fromkeys(rest, grades[first])
            if first in positions:
                positions |= dict.fromkeys(rest, positions[first])
        unseen = {*self.with_duplicates(own_candidates)} - {*own_candidates}
        roster = (
            None
            if ballot.candidates is None
            else tuple(name for name in ballot.candidates if name not in unseen)
        )
        return replace(
            ballot, groups=ranking, grades=grades, positions=positions or None, candidates=roster
        )

    def expand_pair(self, pair: Ballot, own_candidates: Collection[str]) -> Iterator[Ballot]:
        """Yield a comparison for every two duplicates of its candidates."""
        others = {group[0]: group[1:] for group in self.groups}
        first, second = shown_pair(pair)
        for one in (first, *others.get(first, ())):
            for other in (second, *others.get(second, ())):
                names = {first: one, second: other}
                if {one, other}.isdisjoint(own_candidates):
                    groups = tuple(tuple(names[name] for name in group) for group in pair.groups)
                    yield replace(pair, groups=groups, positions={one: 1, other: 2})


MOST_NAMED = 20

_BRACKETS = re.compile(r"(?<![!\\])\[([^\[\]\n]{1,80})\](?![(\w])")
_LABEL_NOUN = re.compile(r"(?:answer|response|candidate|option|member)s?\s+", re.IGNORECASE)
_CALLED_LABEL = re.compile(
    r"\b(?:answer|response|candidate|member)s?[ \t]+[A-Z]{1,2}\d{0,3}\b", re.IGNORECASE
)
_BRACKETED_LABEL = re.compile(r"\[([A-Z]{1,2}\d{0,3})\]")
_LONE_LABEL = re.compile(r"(?<![\w\[.'’-])([A-Z]{1,2}\d{0,3})(?![\w\]'’]|\.\w)")
_GOES_ON = re.compile(r"[*_]{0,3}[ \t]+(?!(?:and|or|but|while|whereas)\b)[^\WA-Z]")
_LIST_SEPARATOR = re.compile(r"\s*(?:[,;/&+]|\band\b|\bor\b)\s*")
_LABEL = re.compile(r"[A-Z]\d{0,3}")
_LONG_LABEL = re.compile(r"[A-Z]{1,2}\d{0,3}")

_FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_INDENTED_CODE = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(?P<ticks>`{1,4})(?!`)[^\n]{0,1000}?(?<!`)(?P=ticks)(?!`)")
_FORMULA = re.compile(r"\$\$.{0,1000}?\$\$|\\\[.{0,1000}?\\\]|\\\(.{0,1000}?\\\)", re.DOTALL)
_TASK = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[xX ]\]", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*\[[^\[\]\n]+\]:[ \t]*\S+:\S*", re.MULTILINE)
_NO_PROSE = (_FENCED, _SPAN, _FORMULA, _TASK, _DEFINITION)


_CITATION_JOINER = re.compile(r"[ \t]*(?:[,;/&+]|and|or)?[ \t]*", re.IGNORECASE)
_LINE_START = re.compile(r"[ \t>*_#]*(?:[-+]|\d{1,9}[.)])?[ \t*_]*")
_QUOTED = re.compile(r"\b(?:according to|in the words of)[ \t]+[*_]{0,3}\Z", re.IGNORECASE)
_SPEAKS = re.compile(
    r"[*_]{0,3}[ \t]+(?:says|said|states|argues|claims|notes|points out|holds that|suggests|writes|"
    r"agrees|disagrees|errs|warns|recommends|proposes|observes|concludes|thinks|believes|reports|"
    r"contends|objects|explains|adds that)\b"
)
_NAMED_BEFORE = re.compile(
    r"\b(?:options?|choices?|variants?|matri(?:x|ces)|vectors?|tensors?|vitamins?|keys?|buttons?|"
    r"(?:foot)?notes?|figures?|tables?|appendix|appendices|variables?|parameters?|symbols?|letters?|"
    r"columns?|rows?|cells?|drives?|pins?|registers?|nodes?|groups?|class(?:es)?|types?|"
    r"categor(?:y|ies)|sets?|scenarios?|hypothes[ie]s|equations?|theorems?|lemmas?)"
    r"[*_\"'”’]{0,3}[ \t]+[*_\"'“‘]{0,3}\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 40


class _Citation(NamedTuple):
    """A pair of brackets: its place in the text and its labels.

    Adjacent brackets have the same `run`. Brackets are joined if they follow a word or brackets
    without a space, as an index does.
    """

    run: int
    is_joined: bool
    ends_sentence: bool
    starts_line: bool
    is_quoted: bool
    follows_noun: bool
    is_called: bool
    names_answer: bool
    unknown: tuple[str, ...]


def check_citations(
    text: str, labels: Collection[str], earlier_texts: Iterable[str] = ()
) -> tuple[str, ...]:
    """Find bracketed labels without an answer, each once.

    Such a label is cited if it is called an answer, is next to citations, is quoted as saying
    something, or has the place of a citation, unless the letter stands alone in a text, or in
    brackets after a noun such as "option". Brackets in code, links, formulas, task lists and
    definitions are not citations; nor are brackets joined to the word before them, like an index,
    unless citations that name an answer are joined as well; nor those of the earlier texts, such as
    the question.
    """
    for other in _NO_PROSE:
        text = other.sub(" ", text)
    text = _INDENTED_CODE.sub(_drop_code, text)
    citations = list(_find_citations(text, labels))
    if not any(each.unknown for each in citations):
        return ()
    texts = list(earlier_texts)
    earlier_labels = {label for one in texts for label in _BRACKETED_LABEL.findall(one)}
    sound_runs = {each.run for each in citations if each.names_answer}
    foreign = [each for each in citations if not earlier_labels.isdisjoint(each.unknown)]
    foreign_runs = {each.run for each in foreign} - sound_runs
    citations = [
        each
        for each in citations
        if each.run not in foreign_runs and earlier_labels.isdisjoint(each.unknown)
    ]
    sound = [each for each in citations if each.names_answer]
    are_joined = any(each.is_joined for each in sound)
    in_sentence = any(not each.ends_sentence and not each.is_quoted for each in sound)
    start_lines = any(each.starts_line for each in sound)
    called, certain, others = set[str](), set[str](), _labels_alone(text)
    for each in citations:
        called |= {*each.unknown} if each.is_called else set()
        certain |= {*each.unknown} if each.is_called or each.run in sound_runs else set()
        if each.follows_noun or (each.starts_line and not start_lines):
            others |= {*each.unknown}
    earlier_letters = {label for one in texts for label in _labels_alone(one)}
    other_meanings = (others - certain) | (earlier_letters - called)
    cited = (
        label
        for each in citations
        if are_joined or each.is_called or not each.is_joined
        if in_sentence or each.ends_sentence or each.is_quoted or {*each.unknown} & certain
        for label in each.unknown
        if label not in other_meanings
    )
    return tuple(islice(dict.fromkeys(cited), MOST_NAMED))


def _find_citations(text: str, labels: Collection[str]) -> Iterator[_Citation]:
    """Read all brackets containing only labels."""
    run, end, is_joined = 0, -1, False
    for match in _BRACKETS.finditer(text):
        between = text[end : match.start()] if end >= 0 else "\n"
        if len(between) > _LOOK_BACK or _CITATION_JOINER.fullmatch(between) is None:
            run += 1
        if match.start() != end:
            last_character = text[match.start() - 1 : match.start()]
            is_joined = last_character.isalnum() or last_character in ("_", "]")
        end = match.end()
        text_before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
        line = text_before.rpartition("\n")[2]
        starts_line = len(line) < _LOOK_BACK and _LINE_START.fullmatch(line) is not None
        called, names_answer, unknown = _read_brackets(match[1], labels)
        yield _Citation(
            run=run,
            is_joined=is_joined,
            ends_sentence=_GOES_ON.match(text, end) is None,
            starts_line=starts_line,
            is_quoted=bool(_SPEAKS.match(text, end) or _QUOTED.search(text_before)),
            follows_noun=_NAMED_BEFORE.search(text_before) is not None,
            is_called=called,
            names_answer=names_answer,
            unknown=unknown,
        )


def _labels_alone(text: str) -> set[str]:
    return set(_LONE_LABEL.findall(_CALLED_LABEL.sub(" ", text))) - {"I"}


def _drop_code(match: re.Match[str]) -> str:
    line: str = match[0]
    return line if re.match(r"\s*(?:[-*+]|\d{1,9}[.)])\s", line) else " "


def _read_brackets(
    bracket_text: str, labels: Collection[str]
) -> tuple[bool, bool, tuple[str, ...]]:
    """Read brackets: explicit citations, valid labels and unknown ones."""
    bare = _LABEL_NOUN.sub("", bracket_text.strip(), count=1)
    parts = [_LABEL_NOUN.sub("", part) for part in _LIST_SEPARATOR.split(bare)]
    form = _LONG_LABEL if any(len(label) > 1 for label in labels) else _LABEL
    if not all(part in labels or form.fullmatch(part) for part in parts):
        return False, False, ()
    unknown = tuple(part for part in parts if part not in labels)
    names_answer = len(unknown) < len(parts)
    is_called = bare != bracket_text.strip()
    if len(parts) > 1 and not names_answer and not is_called:
        return False, False, ()  # a list of something else, such as variables
    return is_called, names_answer, unknown
