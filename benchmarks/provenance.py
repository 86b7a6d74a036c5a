"""What figures are of: the code, its version, the day and the machine."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def code() -> str:
    """The commit that the figures are of."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    """Its processor and how many of them, as the system says."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = names[0] if names else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} processors, {platform.system()}"


def in_words() -> str:
    """All of it in one sentence."""
    day = datetime.now(tz=UTC).date().isoformat()
    return f"countwise {version('countwise')} at {code()}, {day}, {machine()}"
