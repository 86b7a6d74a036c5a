"""The ledger of privacy loss: what was charged to whom, in which unit, and whether it adds up.

Owns the entries and their chain of hashes, the databases they are kept in, and what a computation
costs in the relation that a ledger counts in. Must not know what is computed, nor see a count.
"""
