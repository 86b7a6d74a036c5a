"""The server's tables, beside the ledger in one database so that one transaction spans both."""

import sqlalchemy as sa

from countwise.ledger.ledger import LONGEST, metadata

users = sa.Table(
    "users",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("role", sa.String(10), nullable=False),
    sa.Column("password", sa.String(200), nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False),
    sa.Column("new_password", sa.Boolean, nullable=False, server_default=sa.false()),  # is due
    sa.Column("subject", sa.String(300)),  # of whoever signs in elsewhere
    sa.Index("users_by_subject", "subject", unique=True),
)
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("user", sa.ForeignKey("users.name"), nullable=False, index=True),
    sa.Column("csrf", sa.String(64), nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("expires", sa.Float, nullable=False),
    sa.Column("since", sa.Float, nullable=False, server_default="0"),
)
devices = sa.Table(
    "devices",
    metadata,
    sa.Column("token", sa.String(64), primary_key=True),
    sa.Column("user", sa.ForeignKey("users.name"), nullable=False, index=True),
    sa.Column("created", sa.Float, nullable=False),
)
proposals = sa.Table(
    "proposals",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("scope", sa.String(10), nullable=False),
    sa.Column("name", sa.String(LONGEST), nullable=False),
    sa.Column("micro", sa.BigInteger, nullable=False),  # the cap that is proposed
    sa.Column("by", sa.String(64), nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("decided_by", sa.String(64), nullable=False, server_default=""),
)
api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("user", sa.ForeignKey("users.name"), nullable=False, index=True),
    sa.Column("label", sa.String(LONGEST), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("scopes", sa.String(LONGEST), nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("expires", sa.Float),
    sa.Column("revoked", sa.Float),
)
access = sa.Table(
    "access",
    metadata,
    sa.Column("user", sa.ForeignKey("users.name"), primary_key=True),
    sa.Column("dataset", sa.String(64), primary_key=True),
)
members = sa.Table(
    "members",
    metadata,
    sa.Column("user", sa.ForeignKey("users.name"), primary_key=True),
    sa.Column("project", sa.String(64), primary_key=True),
)
answers = sa.Table(
    "answers",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),  # the name of the charge, too
    sa.Column("dataset", sa.String(64), nullable=False),
    sa.Column("version", sa.String(LONGEST), nullable=False),
    sa.Column("query", sa.String(64)),  # hash of the canonical form while the answer stands
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column(
        "place", sa.BigInteger, nullable=False
    ),  # the ledger's entry: first come, first served
    sa.Column("entry_hash", sa.String(64), nullable=False),
    sa.Column("claim", sa.String(32)),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("slot", sa.Float),  # when the answer may be seen, fixed when work on it begins
    sa.Column("noisy", sa.Text),
    sa.Column("salt", sa.String(32)),  # of the hash of the noisy counts in the ledger
    sa.Column("released_hash", sa.String(64)),
    sa.UniqueConstraint("dataset", "query", name="one_standing_answer"),
    sa.Index("answers_by_state", "state", "place"),
    sa.Index("answers_by_slot", "slot"),
)
jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("user", sa.ForeignKey("users.name"), nullable=False),
    sa.Column("answer", sa.ForeignKey("answers.id"), nullable=False, index=True),
    sa.Column("asked", sa.Text, nullable=False),
    sa.Column("reading", sa.Text, nullable=False),  # what its counts mean, for good
    sa.Column("key", sa.String(LONGEST), nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("micro", sa.BigInteger, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("receipt", sa.Text),  # signed once, when the answer is released
    sa.UniqueConstraint("user", "key", name="one_job_a_key"),
    sa.Index("jobs_by_user", "user", "created"),
)
rates = sa.Table(
    "rates",
    metadata,
    sa.Column("key", sa.String(LONGEST), primary_key=True),
    sa.Column("minute", sa.BigInteger, nullable=False),
    sa.Column("hits", sa.Integer, nullable=False),
)
workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("seen", sa.Float, nullable=False),
)
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False, index=True),
    sa.Column("actor", sa.String(64), nullable=False),
    sa.Column("event", sa.String(40), nullable=False),
    sa.Column("subject", sa.String(LONGEST), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("previous", sa.String(64), nullable=False, server_default=""),
    sa.Column("hash", sa.String(64), nullable=False, server_default=""),
)
