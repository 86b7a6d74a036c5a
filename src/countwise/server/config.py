"""Configuration: a TOML file, then the environment, then the command line; refused if broken.

Every setting is a field below, in the file under `[server]`, in the environment as
COUNTWISE_SERVER_ and its name in capitals. Data sets are tables `[datasets.NAME]`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from countwise.choices import only_keys
from countwise.errors import ConfigError
from countwise.examples.workers import workers
from countwise.toml_files import read_toml
from countwise.verification.schema import Schema, read_schema

PREFIX = "COUNTWISE_SERVER_"
EXAMPLE = "workers"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class DatasetSettings:
    """A data set: what is public about it, and where the rows are that only workers read."""

    name: str
    schema_file: Path
    synthetic: Path
    data: Path
    table: str | None = None
    version: str = "1"
    schema: Schema


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings, checked; the defaults run on one machine without further ado."""

    host: str = "127.0.0.1"
    port: int = 8430
    state: Path = Path("countwise-state")
    database: str = ""
    database_password_file: str = ""
    wait_seconds: float = 15.0
    web_processes: int = 1
    workers: int = 1
    slot_seconds: float = 10.0
    memory_mb: int = 4096
    cpu_seconds: int = 60
    isolation: bool = True
    secure_cookies: bool = False
    session_hours: float = 8.0
    session_idle_minutes: float = 30.0
    sign_ins_per_minute: int = 10
    fresh_minutes: float = 30.0
    two_stewards_above: float = 0.0
    queries_per_minute: int = 60
    plan_seconds: float = 5.0
    rehearsal_seconds: float = 30.0
    plan_memory_mb: int = 2048
    arrival_seconds: float = 15.0
    connections: int = 1000
    trusted_proxies: str = ""
    oidc_issuer: str = ""
    oidc_client: str = ""
    oidc_secret_file: str = ""
    oidc_redirect: str = ""
    oidc_scopes: str = "groups"
    oidc_claim: str = "groups"
    oidc_roles: str = ""
    attempts: int = 3
    keep_audit_days: int = 0
    keep_jobs_days: int = 0
    heads: str = ""
    syslog: bool = False
    example: bool = True
    datasets: Mapping[str, DatasetSettings] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The folder of the web process: the default database, and the key of the receipts."""
        return self.state / "server"

    @property
    def url(self) -> str:
        """The database; by default a SQLite file. Its password may stand in a file of its own."""
        plain = self.database or f"sqlite:///{self.home / 'countwise.db'}"
        if not self.database_password_file:
            return plain
        from sqlalchemy import make_url

        password = _secret(self.database_password_file)
        return make_url(plain).set(password=password).render_as_string(hide_password=False)

    @property
    def heads_file(self) -> Path:
        """Where the signed heads of ledger and audit log are noted."""
        return Path(self.heads) if self.heads else self.home / "heads.jsonl"

    @property
    def oidc_secret(self) -> str:
        """The secret of this client at the identity provider; none for a public client."""
        return _secret(self.oidc_secret_file) if self.oidc_secret_file else ""

    @property
    def signing_key(self) -> Path:
        """The file of the key that signs receipts."""
        return self.home / "signing.key"


def _secret(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise ConfigError(f"{file}: a secret that can not be read.") from None


LIMITS: dict[str, tuple[float, float]] = {
    "port": (0, 65535),
    "wait_seconds": (0.05, 600),
    "web_processes": (1, 64),
    "workers": (0, 64),
    "slot_seconds": (0.1, 3600),
    "memory_mb": (256, 1 << 20),
    "cpu_seconds": (1, 86400),
    "session_hours": (0.001, 24 * 31),
    "session_idle_minutes": (0.01, 24 * 60),
    "sign_ins_per_minute": (1, 100_000),
    "fresh_minutes": (0.01, 24 * 60),
    "two_stewards_above": (0, 1e6),
    "queries_per_minute": (1, 1_000_000),
    "plan_seconds": (0.01, 600),
    "rehearsal_seconds": (0.01, 3600),
    "plan_memory_mb": (256, 1 << 20),
    "arrival_seconds": (0.1, 600),
    "connections": (1, 100_000),
    "attempts": (1, 20),
    "keep_audit_days": (0, 36_500),
    "keep_jobs_days": (0, 36_500),
}
SETTINGS = {each.name: each for each in fields(Config) if each.name != "datasets"}


def load_config(
    path: Path | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    **given: Any,
) -> Config:
    """The configuration of a file, the environment, and settings given here, later ones winning."""
    data = _read(path)
    where = str(path or "configuration")
    only_keys(data, ("server", "datasets"), where=where, error=ConfigError)
    settings: dict[str, Any] = {}
    base = path.parent if path else Path()
    for source, values in (
        (f"{where}, [server]", _table(data, "server", where)),
        ("environment", _from_environment(environment)),
        ("command line", {name: each for name, each in given.items() if each is not None}),
    ):
        for name, value in values.items():
            settings[name] = _setting(name, value, where=source)
            if name == "state" and source.endswith("[server]"):
                settings[name] = base / settings[name]
    datasets = {
        name: _dataset(name, facts, base=base, where=f"{where}, [datasets.{name}]")
        for name, facts in _table(data, "datasets", where).items()
    }
    config = Config(**settings, datasets=datasets)
    other = {name: getattr(config, f"oidc_{name}") for name in ("client", "redirect", "roles")}
    missing = [f"oidc_{name}" for name, value in other.items() if not value]
    if config.oidc_issuer and missing:
        raise ConfigError(f"with oidc_issuer, {' and '.join(missing)} must be set too.")
    if config.example and not datasets:
        return replace(config, datasets={EXAMPLE: _example(config.state)})
    return config


def _example(state: Path) -> DatasetSettings:
    """The bundled data set, its rows in a folder that only workers read."""
    return DatasetSettings(
        name=EXAMPLE,
        schema_file=workers("workers.toml"),
        synthetic=workers("workers_synthetic.csv"),
        data=state / "confidential" / "workers.csv",
        schema=read_schema(workers("workers.toml")),
    )


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    return read_toml(path, what="configuration", error=ConfigError)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, text in environment.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX).lower()
        known = SETTINGS.get(name)
        if known is None:
            raise ConfigError(f"environment: unknown setting {key}.")
        if known.type is bool:
            if text not in ("true", "false"):
                raise ConfigError(f"environment: {key} must be true or false, got {text!r}.")
            found[name] = text == "true"
        elif known.type in (int, float):
            try:
                found[name] = known.type(text)
            except ValueError:
                raise ConfigError(f"environment: {key} must be a number, got {text!r}.") from None
        else:
            found[name] = text
    return found


def _setting(name: str, value: Any, *, where: str) -> Any:
    only_keys([name], SETTINGS, where=where, error=ConfigError)
    known = SETTINGS[name]
    if known.type is Path:
        if not isinstance(value, str | Path) or not str(value):
            raise ConfigError(f"{where}: {name} must be the name of a folder.")
        return Path(value)
    right = isinstance(value, bool) is (known.type is bool) and (
        isinstance(value, known.type)  # type: ignore[arg-type]
        or (known.type is float and isinstance(value, int))
    )
    if not right:
        kind = {bool: "true or false", int: "a whole number", float: "a number"}
        what = kind.get(known.type, "text")  # type: ignore[arg-type]
        raise ConfigError(f"{where}: {name} must be {what}, got {value!r}.")
    low, high = LIMITS.get(name, (None, None))
    if low is not None and high is not None and not low <= value <= high:
        raise ConfigError(f"{where}: {name} must be from {low:g} to {high:g}, got {value!r}.")
    return value


def _dataset(name: str, facts: Any, *, base: Path, where: str) -> DatasetSettings:
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{where}: a data set is named with small letters, digits, - and _, at most 64."
        )
    if not isinstance(facts, Mapping):
        raise ConfigError(f"{where}: must be a table.")
    known = ("schema", "synthetic", "data", "table", "version")
    only_keys(facts, known, where=where, error=ConfigError)
    for key, value in facts.items():
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{where}: {key} must be text.")
    for key in known[:3]:
        if key not in facts:
            raise ConfigError(f"{where}: no {key}. A data set needs {', '.join(known[:3])}.")
    if len(facts.get("version", "")) > 64:
        raise ConfigError(f"{where}: version has at most 64 characters.")
    if not (base / facts["synthetic"]).is_file():
        raise ConfigError(f"{where}: synthetic: there is no file {facts['synthetic']}.")
    return DatasetSettings(
        name=name,
        schema_file=base / facts["schema"],
        synthetic=base / facts["synthetic"],
        data=base / facts["data"],
        table=facts.get("table"),
        version=facts.get("version", "1"),
        schema=read_schema(base / facts["schema"]),
    )


def _table(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: {key} must be a table.")
    return table
