"""What a process of the server takes away from itself, by means of Linux that need no privilege.

* network: a network namespace of its own, without any interface that is up;
* files: Landlock, which lets it open only what lies beneath given paths;
* memory, processor time, core dumps and written files: resource limits.

All three hold for child processes too and can not be undone.
"""

import ctypes
import errno
import os
import resource
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # of linux/sched.h
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38  # of linux/prctl.h
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
READ_FILE, READ_DIR, EXECUTE = 1 << 2, 1 << 3, 1 << 0
ON_FILES = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14)
"""Of the rights of linux/landlock.h, those that files have."""
RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def no_network() -> bool:
    """Leave the network; to be called before the process has threads. False where refused."""
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWUSER | CLONE_NEWNET
    return int(_libc.unshare(flags)) == 0


def die_with_parent() -> None:
    """Be killed when the parent goes."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def limit(*, memory_mb: int, cpu_seconds: int) -> None:
    """No more memory and processor time than this, no core dump, no file written."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))


def landlock_version() -> int:
    """The version of Landlock the kernel has; 0 for none."""
    found: int = _libc.syscall(CREATE_RULESET, None, 0, 1)
    return max(found, 0)


def only_files(*, read: Iterable[Path], write: Iterable[Path] = ()) -> bool:
    """Let this process open nothing but what Python needs and these. False without Landlock."""
    version = landlock_version()
    if version == 0:
        return False
    handled = RIGHTS_BY_VERSION[min(version, 3)]
    ruleset = _Ruleset(handled)
    handle = _libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    if handle < 0:
        return False
    looking = READ_FILE | READ_DIR | EXECUTE
    for path in (*of_python(), *read):
        _allow(handle, path, looking)
    for path in (*write, Path("/dev/null")):
        _allow(handle, path, handled)
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    done = int(_libc.syscall(RESTRICT_SELF, handle, 0)) == 0
    os.close(handle)
    return done


def of_python() -> list[Path]:
    """Where the interpreter, its libraries and the system's own files are."""
    here = {"", os.getcwd()}  # where it was started is no part of Python
    package = str(Path(__file__).parents[2])
    roots = {sys.prefix, sys.base_prefix, package, *(set(sys.path) - here)}
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev"]
    system.append("/run/systemd/resolve")  # where names of hosts are looked up
    return [Path(each) for each in (*sorted(roots), *system) if each and Path(each).exists()]


def can_read(path: Path) -> bool:
    """Whether this process can open a file."""
    try:
        with path.open("rb"):
            return True
    except OSError:
        return False


def _allow(handle: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    allowed = rights if path.is_dir() else rights & ON_FILES
    handled = RIGHTS_BY_VERSION[min(landlock_version(), 3)]
    rule = _Beneath(allowed & handled, place)
    if _libc.syscall(ADD_RULE, handle, 1, ctypes.byref(rule), 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, errno.errorcode.get(code, "Landlock refused a rule"), str(path))
    os.close(place)
