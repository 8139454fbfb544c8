"""Everything that can go wrong, as one tree.

IbidError
├── InvalidInputError           the caller sent something we cannot take
│   ├── InvalidSettingsError
│   ├── UnsupportedTypeError
│   └── TooLargeError
├── NotAllowedError
│   ├── NotSignedInError
│   └── NotAdminError
├── NotFoundError
├── ConflictError
├── LimitReachedError           one person has had as much as this installation allows, for now
│   ├── RateLimitedError
│   └── QuotaExceededError
├── UnreadableDocumentError     a document that will never be indexed as it is
│   ├── EncryptedDocumentError
│   ├── CorruptDocumentError
│   ├── EmptyDocumentError
│   ├── NoTextError
│   ├── TooManyPagesError
│   └── WrongContentError
└── UnavailableError            worth another try
    ├── DatabaseUnavailableError
    ├── StorageUnavailableError
    ├── ModelUnavailableError
    │   └── ModelRateLimitedError
    ├── ModelRejectedError      (not retryable: the same request fails again)
    ├── RecognitionError        (not retryable: a picture that OCR cannot read)
    ├── LeaseLostError          (not retryable: another worker goes on)
    └── TimeBudgetExceededError

A leaf's docstring is its default message. `code` is stable and public; `retryable` says whether the same
call may succeed later. HTTP statuses live in `functions/web/errors.py` alone.
"""

from __future__ import annotations

from typing import Any, ClassVar


class IbidError(Exception):
    """Something went wrong on our side."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **details: Any) -> None:
        """`details` are public facts about the failure (ids, limits), never text of a document."""
        self.message = message or (type(self).__doc__ or "").strip()
        self.details = details
        super().__init__(self.message)


class InvalidInputError(IbidError):
    """The request is not valid."""

    code = "invalid_input"


class InvalidSettingsError(InvalidInputError):
    """The settings were not changed: at least one value is not valid."""

    code = "invalid_settings"


class UnsupportedTypeError(InvalidInputError):
    """This kind of file is not accepted. Send a PDF, DOCX, TXT or Markdown file."""

    code = "unsupported_type"


class TooLargeError(InvalidInputError):
    """The file is larger than this installation accepts."""

    code = "too_large"


class NotAllowedError(IbidError):
    """You may not do this."""

    code = "not_allowed"


class NotSignedInError(NotAllowedError):
    """Sign in first: the request carries no valid bearer token."""

    code = "not_signed_in"


class NotAdminError(NotAllowedError):
    """Only an administrator may do this."""

    code = "not_admin"


class NotFoundError(IbidError):
    """There is no such thing here."""

    code = "not_found"


class ConflictError(IbidError):
    """The thing is not in a state that allows this."""

    code = "conflict"


class LimitReachedError(IbidError):
    """You have reached a limit of this installation. Try again later."""

    code = "limit_reached"
    retryable = True


class RateLimitedError(LimitReachedError):
    """Too many requests within a minute. Go on in a moment."""

    code = "rate_limited"


class QuotaExceededError(LimitReachedError):
    """You have used all that this installation allows you. Try again later."""

    code = "quota_exceeded"


class UnreadableDocumentError(IbidError):
    """The document cannot be read."""

    code = "unreadable"


class EncryptedDocumentError(UnreadableDocumentError):
    """The file is protected by a password. Remove the password and upload it again."""

    code = "encrypted"


class CorruptDocumentError(UnreadableDocumentError):
    """The file is damaged and cannot be opened. Export it again from its source and upload the new file."""

    code = "corrupt"


class EmptyDocumentError(UnreadableDocumentError):
    """The file is empty."""

    code = "empty"


class NoTextError(UnreadableDocumentError):
    """No text was found in the file. If it is a scan, run text recognition on it and upload the result."""

    code = "no_text"


class TooManyPagesError(UnreadableDocumentError):
    """The file has more pages than this installation accepts. Split it and upload the parts."""

    code = "too_many_pages"


class WrongContentError(UnreadableDocumentError):
    """The content is not what the file name says. Send a PDF, DOCX, TXT or Markdown file under its own name."""

    code = "unsupported_type"


class UnavailableError(IbidError):
    """Something this installation depends on does not answer. Try again in a moment."""

    code = "unavailable"
    retryable = True


class DatabaseUnavailableError(UnavailableError):
    """The database does not answer. Try again in a moment."""

    code = "database_unavailable"


class StorageUnavailableError(UnavailableError):
    """The file storage does not answer. Try again in a moment."""

    code = "storage_unavailable"


class ModelUnavailableError(UnavailableError):
    """The model server does not answer. Nothing is lost; try again in a moment."""

    code = "model_unavailable"


class ModelRateLimitedError(ModelUnavailableError):
    """The model server is limiting requests. Nothing is lost; try again in a moment."""

    code = "model_rate_limited"


class ModelRejectedError(UnavailableError):
    """The model server refused the request. An administrator should check the model's name, key and address."""

    code = "model_rejected"
    retryable = False


class RecognitionError(UnavailableError):
    """The picture of the page could not be read."""

    code = "recognition_failed"
    retryable = False


class LeaseLostError(UnavailableError):
    """Another worker has taken this job over."""

    code = "lease_lost"
    retryable = False


class TimeBudgetExceededError(UnavailableError):
    """The time limit of this run is reached; the next run goes on from the last saved page."""

    code = "time_budget"
