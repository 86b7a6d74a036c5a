"""What users do with their own account: sign in and out, passwords, API keys."""

from collections.abc import Sequence

import sqlalchemy as sa

from countwise.ledger.storage import reading, writing
from countwise.server import accounts
from countwise.server.accounts import Actor, SignedIn
from countwise.server.config import Config
from countwise.server.events import note
from countwise.server.refusals import Forbidden
from countwise.server.responses import KeyView, NewKeyView, key_view
from countwise.server.tables import api_keys


class OwnAccount:
    """Sessions, the password and the keys of whoever asks."""

    def __init__(self, config: Config, engine: sa.Engine) -> None:
        self.config, self.engine = config, engine

    def sign_in(self, name: str, password: str, address: str, device: str = "") -> SignedIn:
        """A session for the right name and password."""
        made = accounts.sign_in(self.engine, self.config, name, password, address, device)
        note(self.engine, name, "signed in", address=address[:100])
        return made

    def sign_out(self, token: str) -> None:
        """End a session."""
        accounts.sign_out(self.engine, token)

    def change_password(self, actor: Actor, old: str, new: str, address: str = "") -> None:
        """Another password, for whoever knows the old one; all sessions and keys end."""
        if not actor.in_session:
            raise Forbidden("a password is changed by a person who signed in.")
        accounts.change_password(self.engine, self.config, actor.name, old, new, address)
        note(self.engine, actor.name, "changed password")

    def keys(self, actor: Actor) -> list[KeyView]:
        """The actor's API keys."""
        actor.need("read")
        mine = sa.select(api_keys).where(api_keys.c.user == actor.name)
        with reading(self.engine) as connection:
            return [key_view(row) for row in connection.execute(mine.order_by(api_keys.c.created))]

    def new_key(
        self, actor: Actor, label: str, scopes: Sequence[str], days: float | None = None
    ) -> NewKeyView:
        """A new API key; made by a person who signed in, not with another key."""
        if not actor.in_session:
            raise Forbidden("a key is made by a person who signed in.")
        with writing(self.engine) as connection:
            identity, key = accounts.new_key(connection, actor, label, list(scopes), days)
            note(connection, actor.name, "made key", identity)
        return NewKeyView(id=identity, key=key)

    def revoke_key(self, actor: Actor, key: str) -> None:
        """End one of the actor's keys."""
        if not actor.in_session:
            raise Forbidden("a key is revoked by a person who signed in.")
        accounts.revoke_key(self.engine, key, user=actor.name)
        note(self.engine, actor.name, "revoked key", key)
