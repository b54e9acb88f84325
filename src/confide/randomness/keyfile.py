"""The key of a deployment on disk: owner-only, outside the run directory, gone when the run ends.

Whoever has the key can subtract the noise, so it must not lie where results are copied from, be
readable by anyone else, or outlive the run.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from confide.disk import sync_directory
from confide.randomness.streams import KEY_BYTES, Key


class KeyFileError(RuntimeError):
    """A key file that cannot be trusted, written, read or erased, and why."""


@dataclass(frozen=True)
class KeyFile:
    """A place for one secret key: `create` at the start, `load` on resume, `erase` at the end."""

    path: Path
    run_directory: Path

    def create(self) -> Key:
        """Draw a key from the operating system and store it; refuse a place that is not safe."""
        self._check_place()
        key = Key.from_system()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except FileExistsError:
            raise KeyFileError(
                f"The key file {self.path} exists already: resume the run that it belongs to, "
                "or erase it first."
            ) from None
        except OSError as error:
            raise KeyFileError(f"The key file {self.path} cannot be made: {error}.") from error
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(key.material)
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self.path.parent)
        except OSError as error:
            self.path.unlink(missing_ok=True)
            raise KeyFileError(f"The key file {self.path} cannot be written: {error}.") from error
        return key

    def load(self) -> Key:
        """Read the key of a resumed run; refuse a file that others could read or replace."""
        self._check_place()
        with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
            material = file.read(KEY_BYTES)
        if not any(material):
            raise KeyFileError(
                f"The key file {self.path} holds only zeros: it was being erased, or never "
                "finished, and noise drawn with it would hide nothing."
            )
        return Key(material, "operating system")

    def erase(self) -> None:
        """Overwrite the key with zeros on the disk, then remove the file.

        This defeats whoever reads the file system afterwards, not whoever reads the bare medium:
        journaling and copy-on-write file systems, snapshots, backups and flash memory may keep the
        old blocks. Where that matters, put the file on a memory file system.
        """
        try:
            with os.fdopen(self._open(os.O_WRONLY), "wb") as file:
                file.write(bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            self.path.unlink()
            sync_directory(self.path.parent)
        except OSError as error:
            raise KeyFileError(f"The key file {self.path} cannot be erased: {error}.") from error

    def _check_place(self) -> None:
        parent = self.path.parent.resolve()
        if not parent.is_dir():
            raise KeyFileError(f"The directory {parent} of the key file is missing; make it first.")
        if parent.is_relative_to(self.run_directory.resolve()):
            raise KeyFileError(
                f"The key file {self.path} lies inside the run directory {self.run_directory}, "
                "which is copied and published; put it elsewhere."
            )
        mode = stat.S_IMODE(parent.stat().st_mode)
        if mode & 0o022:
            raise KeyFileError(
                f"The directory {parent} of the key file has mode {mode:04o}, so others can "
                "replace the key; take write permission from group and others."
            )

    def _open(self, access: int) -> int:
        """Open the file without following a link, and check what was opened, not the name."""
        try:
            descriptor = os.open(self.path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise KeyFileError(
                f"The key file {self.path} is missing: it was erased, or never made, and without "
                "it the noise of this run cannot be drawn again."
            ) from None
        except OSError as error:
            raise KeyFileError(f"The key file {self.path} cannot be opened: {error}.") from error
        fault = _fault(os.fstat(descriptor))
        if fault:
            os.close(descriptor)
            raise KeyFileError(f"The key file {self.path} {fault}.")
        return descriptor


def _fault(status: os.stat_result) -> str:
    """Say what is wrong with an opened key file, or nothing."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid} and not to user {os.geteuid()}, who runs this"
    if mode & 0o077:
        return f"has mode {mode:04o}, so others may know the key; only its owner may read it (0600)"
    if status.st_nlink != 1:
        return f"has {status.st_nlink} names, so erasing this one would leave the key under another"
    if status.st_size != KEY_BYTES:
        return (
            f"has {status.st_size} bytes and not {KEY_BYTES}: it is no key, or one never finished"
        )
    return ""
