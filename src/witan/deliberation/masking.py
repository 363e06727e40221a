"""Mask the names of models and vendors in answers, on sheets alone.

A reviewer that recognises an author, itself above all, no longer judges the text. Names that can
mean nothing else are masked wherever they stand. A word that also means other things (Claude,
Gemini, Meta …) is masked only where the text speaks of its author: "I am Gemini, made by Google".
What the question names is what the answer is about, and stays.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from witan.deliberation.ports import Member, Seat

MODEL, VENDOR = "[model]", "[vendor]"

_START, _END = r"(?<![\w-])", r"(?!\w)"

_TAIL = r"(?:[-:.]\w{1,20}){0,8}"
"""Endings of full names: -mini, -2024-08-06, .1, :8b."""

_TIER = r"(?: (?:mini|nano|turbo|pro|plus|max|lite|flash|fast|ultra|high|instruct|preview)\b){0,3}"


@dataclass(frozen=True, slots=True)
class _Name:
    """A name without another meaning; one of `words` stands in each match."""

    words: tuple[str, ...]
    mask: str
    pattern: re.Pattern[str]


def _name(words: str, mask: str, pattern: str) -> _Name:
    whole = re.compile(f"{_START}(?:{pattern}){_END}", re.IGNORECASE)
    return _Name(tuple(words.split()), mask, whole)


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
_MADE = r"(?:made|built|created|developed|designed|trained|produced|released|provided)"


def list_names(council: Iterable[Member | Seat]) -> tuple[str, ...]:
    """Names of these seats and of their models, to be masked."""
    seats = list(council)
    models = [_model_in(seat.source) for seat in seats if not seat.simulated]
    return tuple(dict.fromkeys(n for n in (*models, *(seat.name for seat in seats)) if n))


def _model_in(source: str) -> str:
    """The model of a source, behind its server or provider."""
    server, _, model = source.rpartition("#")
    if "://" in server:
        return model
    provider, _, model = source.partition(":")
    return "" if provider in ("cmd", "script") else model


def mask(text: str, question: str, names: Sequence[str]) -> str:
    """Mask everything in a text revealing its author.

    `names` are those of the council's own models. Masking a masked text changes nothing.
    """
    question_words, lower = question.casefold(), text.casefold()
    present = {word for word in _NAME_WORDS if word in lower}
    for name in _NAMES if present else ():
        if not present.isdisjoint(name.words) and not _among(name.words, question_words):
            text = name.pattern.sub(name.mask, text)
    unique, words = _own_names(tuple(names))
    for own, digits, pattern in unique:
        if digits in text and not _among((own,), question_words):
            text = pattern.sub(MODEL, text)
    here = [word for word in (*_MODEL_WORDS, *words, *_VENDOR_WORDS) if word in text]
    if all(_among((word,), question_words) for word in here):
        return text  # most answers name nobody, and the search is the dear part
    models = tuple(word for word in (*_MODEL_WORDS, *words) if not _among((word,), question_words))
    vendors = tuple(word for word in _VENDOR_WORDS if not _among((word,), question_words))
    of_model, of_vendor = _self_reference(models, vendors)
    text = of_model.sub(rf"\g<lead>{MODEL}", text)
    return of_vendor.sub(rf"\g<lead>{VENDOR}", text)


def _among(words: Sequence[str], question: str) -> bool:
    """True if the question has one of the words.

    GPT4 has GPT in it; metadata has no Meta.
    """
    return any(
        word.casefold() in question
        and re.search(rf"(?<![^\W\d_]){re.escape(word.casefold())}(?![^\W\d_])", question)
        for word in words
    )


@lru_cache(maxsize=64)
def _own_names(
    names: tuple[str, ...],
) -> tuple[tuple[tuple[str, str, re.Pattern[str]], ...], tuple[str, ...]]:
    """Split the council's names into unmistakable ones and common words.

    The former with digits that stand in all that their patterns match, for a quick look.
    """
    unique, words = [], []
    for name in dict.fromkeys(part for each in names for part in _parts(each)):
        digits = re.search(r"\d+", name)
        if len(name) >= 4 and digits is not None:
            spelled = r"[-_ ]?".join(re.escape(part) for part in re.split(r"[-_\s]+", name))
            pattern = re.compile(f"{_START}{spelled}{_TAIL}{_END}", re.IGNORECASE)
            unique.append((name, digits[0], pattern))
        else:
            words.append(name)
    return tuple(unique), tuple(words)


def _parts(name: str) -> Iterator[str]:
    for part in (name.strip(), re.split(r"[/#]", name)[-1].strip()):
        if re.search(r"[^\W\d_]", part):
            yield part


@lru_cache(maxsize=64)
def _self_reference(
    models: tuple[str, ...], vendors: tuple[str, ...]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a text naming its own model or vendor."""
    model, vendor = _any_of(models), _any_of(vendors)
    who = rf"(?:{vendor}(?:['’]s)? )?{model}(?: R\+?| \d(?:\.\d)?)?{_END}"
    by_name = rf"(?:{_I_AM}(?: called| named)?|my name is|call me) (?={who}(?!(?-i: [A-Z][a-z])))"
    by_role = rf"as (?:an AI(?: assistant| model)?,? )?(?={who},? (?:I\b|my\b|an? ))"
    by_kind = rf"(?:{_I_AM}|as) an?{_ADJECTIVES} (?:named|called|known as) "
    of_model = rf"\b(?P<lead>{by_name}|{by_role}|{by_kind}|I, (?={who},)){who}"
    made = rf"{_MADE}(?: and {_MADE})? by (?:the \w{{1,20}} (?:at|of) )?"
    kind = rf"an?{_ADJECTIVES} (?:AI|model|assistant|chatbot){_ADJECTIVES}"
    i_was = (
        rf"I(?: am|['’]m| was|['’]ve been| have been)(?: \[model\])?,?"
        rf"(?: an?{_ADJECTIVES})?,?(?: and)?(?: that| who| which)?(?: was| is)? {made}"
    )
    as_made = rf"as {kind},? {made}(?={vendor}{_END},? (?:I\b|my\b))"
    makers = r"my (?:developers?|creators?|makers?|trainers?|training)(?:,| at| is| are| by) "
    owner = rf"(?:{_I_AM}|as) (?={vendor}(?:['’]s)? \[model\])"
    of_vendor = rf"\b(?P<lead>{i_was}|{as_made}|{makers}|{owner}){vendor}{_END}"
    return re.compile(of_model, re.IGNORECASE), re.compile(of_vendor, re.IGNORECASE)


def _any_of(words: Sequence[str]) -> str:
    return f"(?-i:{'|'.join(re.escape(word) for word in words)})" if words else r"(?!)"
