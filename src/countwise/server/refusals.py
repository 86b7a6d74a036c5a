"""Refusals of the server, each with the HTTP status it has; what they say depends on no data."""

from countwise.errors import BudgetError, CountwiseError, InputError, StorageError


class Refusal(CountwiseError):  # noqa: N818
    """Something the caller may not do, or that is not there."""

    status = 400
    code = "refused"


class NotSignedIn(Refusal):
    """No session or key, or one that is no longer good."""

    status, code = 401, "not_signed_in"


class Forbidden(Refusal):
    """A role or scope that does not reach so far."""

    status, code = 403, "forbidden"


class PasswordFirst(Forbidden):
    """A first password that is to be changed before anything else."""

    code = "password_first"


class NotThere(Refusal):
    """Something that does not exist, or that this caller may not know of."""

    status, code = 404, "not_found"


class Conflict(Refusal):
    """Something that can not be done in the state things are in."""

    status, code = 409, "conflict"


class Proposed(Conflict):
    """Something that another steward has to approve, and that was written down for that."""

    code = "proposed"


class Inconsistent(Refusal):
    """What is stored does not agree with the ledger; it is not shown."""

    status, code = 500, "inconsistent"


class TooMany(Refusal):
    """More than the rate limit allows."""

    status, code = 429, "too_many"


def status_of(problem: CountwiseError) -> tuple[int, str, str]:
    """HTTP status, code and message; a fault of ours says nothing about itself."""
    if isinstance(problem, Refusal):
        return problem.status, problem.code, str(problem)
    if isinstance(problem, BudgetError):
        return 402, "budget", str(problem)
    if isinstance(problem, InputError):
        return 422, "input", str(problem)
    if isinstance(problem, StorageError):
        return 503, "storage", str(problem)
    return 500, "fault", "a fault of ours; nothing was released."
