"""Where data is looked for: CONFIDE_DATA, the cache directory, and installed packages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

HUB = "datasets"
PIP = {
    "PIL.Image": "Pillow",
    "datasets": "datasets",
    "pyarrow.parquet": "pyarrow",
    "sklearn.datasets": "scikit-learn",
}


@dataclass(frozen=True)
class Files:
    """Files of one layout: all of `files` under `folder`, each also with .gz at its end.

    A file that ends in / is a folder. `part` says what is there of the whole set, if not all.
    """

    folder: str
    files: tuple[str, ...]
    reader: str  # "module:function", called with the folder's path and the options
    part: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Package:
    """A Python package that brings the data; `name` is what the package calls it."""

    module: str
    name: str
    reader: str  # "module:function", called with the name and the options
    part: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


Way = Files | Package


@dataclass(frozen=True)
class Found:
    """A way that works here, and the path or the package's name for it."""

    way: Way
    where: Path | str

    def __str__(self) -> str:
        """In words."""
        if isinstance(self.way, Files):
            return str(self.where)
        if self.way.module == HUB:
            return f"Hugging Face {self.where}"
        return f"the package {self.way.module}"

    @property
    def here(self) -> bool:
        """Whether it can be read without a download."""
        if isinstance(self.way, Files) or self.way.module != HUB:
            return True
        place = hub_cache() / str(self.where).replace("/", "___")
        # Configuration, version, fingerprint; the information is written last.
        return any(place.glob("*/*/*/dataset_info.json"))


def cache() -> Path:
    """The one cache directory: ~/.cache/confide, or as XDG_CACHE_HOME says."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "confide"


def hub_cache() -> Path:
    """Where the package `datasets` keeps what it has prepared for confide."""
    return cache() / "huggingface"


def roots() -> list[Path]:
    """The directories that are searched, in this order."""
    own = os.environ.get("CONFIDE_DATA")
    return [*([Path(own).expanduser()] if own else []), cache()]


def present(folder: Path, name: str) -> Path | None:
    """A file of this name, or compressed with .gz at its end; or a folder if it ends in /."""
    if name.endswith("/"):
        return folder / name if (folder / name).is_dir() else None
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def path_of(folder: Path, name: str) -> Path:
    """The file, compressed or not."""
    path = present(folder, name)
    if path is None:
        raise ValueError(f"Data: {folder / name} does not exist, nor with .gz at its end.")
    return path


def locate(ways: tuple[Way, ...]) -> Found | None:
    """The first way that works: files in any root before packages."""
    for way in ways:
        if isinstance(way, Files):
            for root in roots():
                folder = root / way.folder
                if all(present(folder, name) for name in way.files):
                    return Found(way, folder)
        elif find_spec(way.module) is not None:
            return Found(way, way.name)
    return None


def needed(module: str, thing: str) -> ModuleType:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as why:
        raise ValueError(
            f"{thing}: the package {PIP[module]} is not installed, allowed is after "
            "pip install 'confide[data]'."
        ) from why
