"""What a browser sends: forms, and the files that come with them."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from witan.errors import InvalidParameter

__all__ = ["Form", "Sent", "form_of", "sent_of"]

MOST_FILES = 64


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form, and its files by name.

    Parameters
    ----------
    many
        All values of the fields that were sent more than once, or may be.
    """

    fields: Mapping[str, str]
    many: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]

    def get(self, name: str) -> str:
        """A field, without spaces around it; empty: it was not filled in."""
        return self.fields.get(name, "").strip()


@dataclass(frozen=True, slots=True)
class Sent:
    """A form whose files may be anything; each is known by its name."""

    many: Mapping[str, tuple[str, ...]]
    contents: Mapping[str, bytes]

    def text(self, name: str) -> str:
        """A field as it was sent; empty: it was not."""
        return self.many.get(name, ("",))[-1]


async def form_of(request: Request) -> Form:
    """Read the form of a request, whose files are texts.

    Raises
    ------
    InvalidParameter
        If a text holds what cannot be stored, or a file is no text.
    """
    sent = await sent_of(request)
    read = {name: _decoded(name, content) for name, content in sent.contents.items()}
    return Form({name: values[-1] for name, values in sent.many.items()}, sent.many, read)


async def sent_of(request: Request) -> Sent:
    """Read the form of a request.

    Raises
    ------
    InvalidParameter
        If a text holds what cannot be stored.
    """
    # A field may be as long as the door lets a request be.
    longest = request.app.state.settings.body_bytes
    async with request.form(max_files=MOST_FILES, max_fields=1000, max_part_size=longest) as sent:
        many = _fields(sent)
        files = [each for _, each in sent.multi_items() if isinstance(each, UploadFile)]
        return Sent(many, {each.filename: await each.read() for each in files if each.filename})


def _fields(sent: FormData) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in sent.multi_items():
        if isinstance(value, str):
            if "\0" in value:
                raise InvalidParameter(name, "a text with a NUL character", "text that can be kept")
            # Browsers send every line end as two characters.
            found[name] = (*found.get(name, ()), value.replace("\r\n", "\n"))
    return found


def _decoded(file: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        expected = f"UTF-8 text (it is none at byte {error.start:,})"
        raise InvalidParameter("file", file, expected) from None
    if "\0" in text:
        raise InvalidParameter("file", file, "text, without NUL characters")
    return text
