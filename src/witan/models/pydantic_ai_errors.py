"""Translation of pydantic-ai's errors into ours: one sentence, without keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from witan.errors import ModelError
from witan.models.openai_failures import broken
from witan.models.openai_replies import is_transient, words_of
from witan.models.secrets import Redaction

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError


@dataclass(frozen=True, slots=True)
class Translation:
    """Wording of one model's errors.

    Parameters
    ----------
    name
        Of the model, for messages.
    key_variable
        Where its key was found; None: it needs none of ours.
    short
        Makes the words of others fit for a message.
    """

    name: str
    model: str
    key_variable: str | None
    base_url: str | None
    short: Redaction

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise `ModelError` in place of whatever the library raises."""
        from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UserError

        try:
            yield
        except ModelAPIError as error:
            raise self._api_error(error) from error
        except UnexpectedModelBehavior as error:
            problem = f"sent what cannot be read as a reply: {self.short(str(error))}"
            raise ModelError(self.name, problem, transient=True) from error
        except UserError as error:
            raise self.unusable(error) from error
        except httpx2.HTTPError as error:
            raise self._unconnected(error) from error

    def unusable(self, error: Exception) -> ModelError:
        """The error before any request was sent."""
        return ModelError(self.name, f"cannot be called: {self.short(str(error))}")

    def _api_error(self, error: "ModelAPIError") -> ModelError:
        from pydantic_ai import exceptions as ai

        words = self.short(_words(error)).rstrip(".")
        status = error.status_code if isinstance(error, ai.ModelHTTPError) else None
        if isinstance(error, ai.ModelConnectionError):
            return self._unconnected(error)
        if status is None and isinstance(error.__cause__, ValueError):
            problem = "broke off, or sent something that is not JSON"
            return ModelError(self.name, problem, transient=True)
        suffix = "" if status is None else f" ({status})"
        if isinstance(error, ai.ModelAuthenticationError):
            variable = self.key_variable
            rejected = "its credentials" if variable is None else f"the API key in {variable}"
            problem = f"rejected {rejected}{suffix}: {words}"
        elif isinstance(error, ai.ModelNotFoundError):
            problem = f"does not know the model {self.model!r}{suffix}: {words}"
        else:
            verb = "cannot answer now" if _may_pass(error) else "refused the call"
            problem = f"{verb}{suffix}: {words}"
        return ModelError(self.name, problem, status, error.retry_after, _may_pass(error))

    def _unconnected(self, error: Exception) -> ModelError:
        """The network's words behind a library's and provider's error."""
        where = "the provider's address" if self.base_url is None else self.short(self.base_url)
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, httpx2.HTTPError):
            cause = cause.__cause__
        if cause is None:
            return ModelError(self.name, f"broke off: {self.short(str(error))}", transient=True)
        failure = broken(cause, where)
        problem = self.short(failure.problem)
        return ModelError(self.name, problem, transient=failure.transient, sent=failure.sent)


def _may_pass(error: "ModelAPIError") -> bool:
    """Check for a transient failure; exhausted credit is permanent."""
    from pydantic_ai import exceptions as ai

    if isinstance(error, ai.ModelQuotaExceededError):
        return False
    if isinstance(error, ai.ModelHTTPError):
        return is_transient(error.status_code)
    return isinstance(
        error, ai.ModelRateLimitError | ai.ModelUnavailableError | ai.ModelServerError
    )


def _words(error: "ModelAPIError") -> str:
    return words_of(error.body).strip() or error.message
