"""A mount namespace in which only one folder, empty and in memory, can be written.

The kernel enforces it, whatever the code within does: everything else is mounted read-only, there
are no devices, no network and no other processes, and no capability is left to change that.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x00020000, 0x08000000, 0x10000000
_NEW_PIDS, _NEW_NETWORK = 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _BIND, _MOVE, _RECURSIVE, _PRIVATE = 2, 4, 8, 4096, 8192, 16384, 1 << 18
_MOUNT_SETATTR = 442  # the same number on every architecture
_AT_FDCWD, _AT_RECURSIVE, _ATTR_READ_ONLY = -100, 0x8000, 1
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAPABILITY_VERSION_3, _CAPABILITIES = 0x20080522, 64

DEVICES = ("null", "zero", "full", "random", "urandom")
"""The contents of /dev in the jail."""

SIZE = "6g"
"""Most bytes that the folder may hold."""

_libc = ctypes.CDLL(None, use_errno=True)


def enter(folder: Path) -> bool:
    """Shut this process in, so that only `folder` can be written; false if that is not allowed.

    Everything that follows runs in a child, which is process 1 of its namespace; the caller waits
    for it here and ends with it. Call this before any thread is started.

    Raises:
        RuntimeError: something outside the folder can be written nevertheless.
    """
    if not _unshare():
        return False
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _mount(folder)
    _drop_capabilities()
    check(folder)
    return True


def check(folder: Path) -> None:
    """Check that only the folder is mounted for writing, and that nothing can be remounted.

    Raises:
        RuntimeError: another mount can be written, or a capability is left.
    """
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        point, options = line.split()[4:6]
        if "ro" not in options.split(",") and Path(point) != folder:
            raise RuntimeError(f"the jail leaks: {point} can be written")
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    held = next(line for line in status.splitlines() if line.startswith("CapEff")).split()[1]
    if int(held, 16):
        raise RuntimeError(f"the jail leaks: capabilities {held} are left")


def _unshare() -> bool:
    """Enter new namespaces; an unprivileged user also gets a user namespace."""
    if sys.platform != "linux":
        return False
    wanted = _NEW_MOUNTS | _NEW_IPC | _NEW_PIDS | _NEW_NETWORK
    if _libc.unshare(wanted) == 0:
        return True
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(wanted | _NEW_USER) != 0:
        return False
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():
        Path("/proc/self", name).write_text(text, encoding="ascii")
    return True


def _mount(folder: Path) -> None:
    _mount_one(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount_one("tmpfs", str(folder), "tmpfs", _NOSUID | _NODEV, f"size={SIZE},mode=700")
    _mount_devices(folder / "dev")
    _mount_one("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _set_attributes("/", _AT_RECURSIVE, set_=_ATTR_READ_ONLY)
    _set_attributes(str(folder), 0, clear=_ATTR_READ_ONLY)


def _mount_devices(place: Path) -> None:
    """Leave only harmless devices in /dev: no mount option would protect a disk there."""
    place.mkdir()
    _mount_one("tmpfs", str(place), "tmpfs", _NOSUID, "size=1m,mode=755")
    for name in DEVICES:
        (place / name).touch()
        _mount_one(f"/dev/{name}", str(place / name), None, _BIND)
    (place / "fd").symlink_to("/proc/self/fd")
    _mount_one(str(place), "/dev", None, _MOVE)
    place.rmdir()


def _mount_one(
    source: str | None, target: str, kind: str | None, flags: int, data: str = ""
) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _call("mount", *texts, ctypes.c_ulong(flags), os.fsencode(data))


def _set_attributes(target: str, flags: int, *, set_: int = 0, clear: int = 0) -> None:
    attributes = (ctypes.c_uint64 * 4)(set_, clear, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    number = ctypes.c_long(_MOUNT_SETATTR)
    _call("syscall", number, _AT_FDCWD, os.fsencode(target), flags, attributes, size)


def _drop_capabilities() -> None:
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
