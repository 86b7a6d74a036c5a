"""Who publishes a page, of what, and when: the imprint, as of a book."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, kw_only=True)
class Imprint:
    """Title, producer, contact, and the day as 2026-11-19; each may be unknown.

    >>> Imprint(title="Clinics", producer="Health Office", contact="a@b.example").line
    'Clinics · Health Office · a@b.example'
    """

    title: str = ""
    producer: str = ""
    contact: str = ""
    date: str = ""

    @property
    def line(self) -> str:
        """All that is known, in one line."""
        return " · ".join(filter(None, (self.title, *self.by)))

    @property
    def by(self) -> tuple[str, ...]:
        """Whom to ask and how old it is, as far as that is known."""
        return tuple(filter(None, (self.producer, in_words(self.date), self.contact)))


def today() -> str:
    """The day, at Greenwich, as 2026-11-19."""
    return datetime.now(UTC).date().isoformat()


def in_words(day: str) -> str:
    """A day as people write it; what is no day stays as it is."""
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return day
    return f"{found.day} {MONTHS[found.month - 1]} {found.year}"
