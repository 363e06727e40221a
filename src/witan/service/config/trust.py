"""What a file may not decide that was found by searching, and so may be somebody else's."""

from witan.errors import ConfigError
from witan.models.seats import parse_seat
from witan.service.config.history import forbidden_to_found_files
from witan.service.config.layers import Setting
from witan.service.config.schema import SEATS, MemberTable, within

__all__ = ["refuse_untrusted"]


def refuse_untrusted(setting: Setting) -> None:
    """Refuse what a file that was only found may not decide.

    Raises
    ------
    ConfigError
        If it runs a program, or says where keys or sessions go, what is paid, or who is served.
    """
    if setting.key[0] == "providers" and setting.key[2] in ("key", "url"):
        raise _untrusted(setting, setting.written, f"sets the {setting.key[2]} of a provider")
    if setting.key[0] == "price":
        raise _untrusted(setting, setting.written, "sets the price of a seat")
    if setting.key[0] == "serve":
        raise _untrusted(setting, setting.written, "says who may reach the server")
    if (deed := forbidden_to_found_files(setting)) is not None:
        raise _untrusted(setting, setting.written, deed)
    entries: tuple[MemberTable, ...] = setting.value if within(setting.key) in SEATS else ()
    for number, entry in enumerate(entries, start=1):
        key = f"{setting.written}[{number}]"
        for what in ("key", "url", "price"):
            if getattr(entry, what) is not None:
                raise _untrusted(setting, f"{key}.{what}", f"sets the {what} of a seat")
        if _runs(entry.seat):
            raise _untrusted(setting, key, "runs a program")


def _runs(text: str) -> bool:
    """Whether a seat starts a program; judged by what it is read as, since that is what is run."""
    try:
        return parse_seat(text).provider == "cmd"
    except ConfigError:
        return False  # a member's name, or no seat at all


def _untrusted(setting: Setting, key: str, what: str) -> ConfigError:
    return ConfigError(
        setting.where,
        key,
        f"{what}, which a file that was found by searching may not; "
        f"once you have read it, name it: --config {setting.where}",
    )
