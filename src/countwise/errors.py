"""Everything that can go wrong, and whose fault it is.

    CountwiseError            exit code 1, a fault of ours
    ├── InputError            exit code 2, the user's input is wrong
    │   ├── ChoiceError       a word that is not one of those possible
    │   ├── TableError        a table or domain file
    │   ├── PlanError         a plan: levels, epsilon, mechanism, adjustment
    │   ├── ReleaseError      a folder that is not a release, or not a whole one
    │   ├── SchemaError       the public schema of a data set
    │   ├── RequestError      a model, filter or claim to be verified
    │   ├── AnswerError       a file that is not an answer to such a request
    │   ├── ConfigError       the configuration of the server
    │   └── LedgerError       a ledger that is not whole
    ├── StorageError          exit code 1, a database that is locked, full or out of reach
    └── BudgetError           exit code 3, refused because the budget does not allow it

A message says what is wrong, where, and what would be right. It never shows a count, or a label or
a name that was not asked for, and never repeats what a library says: that quotes what it read.
"""


class CountwiseError(Exception):
    """Root of the tree; raised as itself only for faults of the software."""

    exit_code = 1


class InputError(CountwiseError):
    """What the user gave can not be used as it is."""

    exit_code = 2


class ChoiceError(InputError):
    """An argument is not one of the words it can be."""


class TableError(InputError):
    """A table of counts, or a list of cells, is not what it should be."""


class PlanError(InputError):
    """A plan does not say how to release, or says it in a way that can not be."""


class ReleaseError(InputError):
    """A release folder is missing, damaged, or of another version."""


class SchemaError(InputError):
    """A schema file is missing, or does not describe a data set."""


class RequestError(InputError):
    """A model, filter or claim can not be read, or does not fit the public schema."""


class AnswerError(InputError):
    """A file is not an answer, or its numbers are not those its noisy counts imply."""


class ConfigError(InputError):
    """A server can not start with this configuration."""


class LedgerError(InputError):
    """A ledger was tampered with, or is damaged."""


class StorageError(CountwiseError):
    """The database could not make a change; none was made."""


class BudgetError(CountwiseError):
    """The privacy budget does not allow the request."""

    exit_code = 3
