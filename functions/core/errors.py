"""The errors of Ibid, as one tree.

IbidError
├── InvalidInputError           the request contains something that Ibid does not accept
│   ├── InvalidSettingsError
│   ├── UnsupportedTypeError
│   └── TooLargeError
├── NotAllowedError
│   ├── NotSignedInError
│   ├── MissingScopeError
│   └── NotAdminError
├── NotFoundError
├── ConflictError
│   └── ServerInUseError        documents or notes have the vectors of the embedding server
├── LimitReachedError           the user has reached a limit that will pass
│   ├── RateLimitedError
│   └── QuotaExceededError
├── UnreadableDocumentError     the file cannot be indexed as it is
│   ├── EncryptedDocumentError
│   ├── CorruptDocumentError
│   ├── EmptyDocumentError
│   ├── NoTextError
│   ├── TooManyPagesError
│   ├── TooComplexError
│   └── WrongContentError
└── UnavailableError            a later attempt may succeed
    ├── DatabaseUnavailableError
    ├── StorageUnavailableError
    ├── ModelUnavailableError
    │   ├── ModelRateLimitedError
    │   └── ModelTooSlowError
    ├── ModelRejectedError      (not retryable: the same request fails again)
    ├── RecognitionError        (not retryable: OCR cannot read this image)
    ├── ProcessingFailedError   (a fault of Ibid: tried again only once)
    ├── LeaseLostError          (not retryable: another worker continues)
    └── TimeBudgetExceededError

A leaf's docstring is its default message. `code` is stable and public; `retryable` says whether the same
call may succeed later. HTTP statuses live in `functions/web/errors.py` alone.
"""

from __future__ import annotations

from typing import Any, ClassVar


class IbidError(Exception):
    """Something went wrong on our side. An administrator finds the cause in the log."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **details: Any) -> None:
        """`details` are public facts about the failure (ids, limits), never text of a document."""
        self.message = message or (type(self).__doc__ or "").strip()
        self.details = details
        super().__init__(self.message)


class InvalidInputError(IbidError):
    """The request is not valid. Check its fields and their values."""

    code = "invalid_input"


class InvalidSettingsError(InvalidInputError):
    """No setting was changed, because at least one value is not valid. Correct it and save again."""

    code = "invalid_settings"


class UnsupportedTypeError(InvalidInputError):
    """This kind of file is not accepted. Send a PDF, DOCX, TXT or Markdown file."""

    code = "unsupported_type"


class TooLargeError(InvalidInputError):
    """The file is larger than this installation accepts. Upload a smaller file."""

    code = "too_large"


class NotAllowedError(IbidError):
    """You are not allowed to do this. Sign in as a user who is."""

    code = "not_allowed"


class NotSignedInError(NotAllowedError):
    """The request has no valid bearer token. Sign in and send it again."""

    code = "not_signed_in"


class MissingScopeError(NotAllowedError):
    """This API key, or this assistant's sign-in, may not do this. Make an API key with the scope that it takes."""

    code = "missing_scope"


class NotAdminError(NotAllowedError):
    """Only an administrator may do this. Sign in as an administrator."""

    code = "not_admin"


class NotFoundError(IbidError):
    """The requested item does not exist. It may have been deleted."""

    code = "not_found"


class ConflictError(IbidError):
    """The request conflicts with the current state of the item. Reload it and try again."""

    code = "conflict"


class ServerInUseError(ConflictError):
    """Documents or notes have the vectors of this embedding server. Say what should happen to them."""

    code = "server_in_use"


class LimitReachedError(IbidError):
    """You have reached a limit of this installation. Try again later."""

    code = "limit_reached"
    retryable = True


class RateLimitedError(LimitReachedError):
    """Too many requests within a minute. Try again in a moment."""

    code = "rate_limited"


class QuotaExceededError(LimitReachedError):
    """You have used up your quota on this installation. Try again later."""

    code = "quota_exceeded"


class UnreadableDocumentError(IbidError):
    """The document cannot be read. Export it again from its source and upload the new file."""

    code = "unreadable"


class EncryptedDocumentError(UnreadableDocumentError):
    """The file is protected by a password. Remove the password and upload it again."""

    code = "encrypted"


class CorruptDocumentError(UnreadableDocumentError):
    """The file is damaged and cannot be opened. Export it again from its source and upload the new file."""

    code = "corrupt"


class EmptyDocumentError(UnreadableDocumentError):
    """The file is empty. Upload a file that has visible text."""

    code = "empty"


class NoTextError(UnreadableDocumentError):
    """No text was found in the file. If it is a scan, run text recognition on it and upload the result."""

    code = "no_text"


class TooManyPagesError(UnreadableDocumentError):
    """The file has more pages than this installation accepts. Split it and upload the parts."""

    code = "too_many_pages"


class TooComplexError(UnreadableDocumentError):
    """It takes more memory or time than Ibid spends on one page. Print the file to a new PDF and upload that."""

    code = "too_complex"


class WrongContentError(UnreadableDocumentError):
    """The content does not match the file name. Send a PDF, DOCX, TXT or Markdown file with its own extension."""

    code = "unsupported_type"


class UnavailableError(IbidError):
    """A service that this installation needs does not answer. Try again in a moment."""

    code = "unavailable"
    retryable = True


class DatabaseUnavailableError(UnavailableError):
    """The database does not answer. Try again in a moment."""

    code = "database_unavailable"


class StorageUnavailableError(UnavailableError):
    """The file storage does not answer. Try again in a moment."""

    code = "storage_unavailable"


class ModelUnavailableError(UnavailableError):
    """The model server does not answer. Nothing is lost. Try again in a moment."""

    code = "model_unavailable"


class ModelRateLimitedError(ModelUnavailableError):
    """The model server is limiting requests. Nothing is lost. Try again in a moment."""

    code = "model_rate_limited"


class ModelTooSlowError(ModelUnavailableError):
    """The language model did not answer in time. Ask again, or choose a smaller model."""

    code = "model_too_slow"


class ModelRejectedError(UnavailableError):
    """The model server refused the request. An administrator should check the model's name, key and address."""

    code = "model_rejected"
    retryable = False

    @property
    def concerns_every_text(self) -> bool:
        """Whether any text would be refused: a wrong key, model or number of dimensions, or a used up quota."""
        return "returned_dimensions" in self.details or self.details.get("status") in (401, 403, 404, 429)


class RecognitionError(UnavailableError):
    """OCR could not read the image of the page. Upload a clearer scan."""

    code = "recognition_failed"
    retryable = False


class ProcessingFailedError(UnavailableError):
    """An error in Ibid itself keeps this document from being processed. An administrator finds the cause in the log."""

    code = "processing_failed"


class LeaseLostError(UnavailableError):
    """Another worker has taken over this job and continues it, so this worker stops."""

    code = "lease_lost"
    retryable = False


class TimeBudgetExceededError(UnavailableError):
    """The time limit of this run is reached. The next run continues after the last saved page."""

    code = "time_budget"
