"""A finding of `binloom doctor`."""

from dataclasses import dataclass
from typing import Literal

from ingest.errors import BinloomError

Level = Literal["good", "advice", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """A fact about the place where binloom runs.

    Attributes
    ----------
    subject
        The part that was checked, such as `java`.
    level
        `good`; `advice`: it could be better; `warning`: something will be slow, missing or in the way; `error`:
        commands will fail or give wrong answers.
    message
        The fact, and the remedy if the level is not `good`.
    """

    subject: str
    level: Level
    message: str

    @classmethod
    def of_error(cls, subject: str, error: BinloomError) -> "Finding":
        """Return the finding that a check ended with an error."""
        return cls(subject, "error", str(error))
