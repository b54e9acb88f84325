"""`load`: find the data, read it by the way that fits, say what is missing."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from confide.data.catalogue import CATALOGUE, Entry
from confide.data.dataset import Dataset
from confide.data.places import locate, roots
from confide.data.settings import check_names, nearest

Reader = Callable[..., Dataset]
OWN = {
    ".npz": "confide.data.own:read_npz",
    ".csv": "confide.data.own:read_table",
    ".csv.gz": "confide.data.own:read_table",
    ".parquet": "confide.data.own:read_table",
}


def load_dataset(name_or_path: str, options: Mapping[str, Any]) -> Dataset:
    """A data set by its name, a file or folder of one's own, or a Hugging Face name."""
    if name_or_path in CATALOGUE:
        return load_entry(CATALOGUE[name_or_path], options)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return read("confide.data.folders:read_folder", name_or_path, path, options)
    ending = next((e for e in OWN if path.name.lower().endswith(e)), None)
    if path.is_file() and ending is not None:
        return read(OWN[ending], name_or_path, path, options)
    if path.exists() or ending is not None or name_or_path.startswith(("/", ".", "~")):
        state = "is of no known kind" if path.exists() else "does not exist"
        raise ValueError(
            f"Data: file {name_or_path!r} {state}, allowed are {', '.join(OWN)} and a folder of "
            "images."
        )
    if name_or_path.count("/") == 1:
        return read("confide.data.hub:read_hub", name_or_path, name_or_path, options)
    raise ValueError(
        f"Data: name = {name_or_path!r} is unknown, allowed are {', '.join(CATALOGUE)}, a file, a "
        f"folder of images or a Hugging Face OWNER/NAME.{nearest(name_or_path, CATALOGUE)}"
    )


def load_entry(entry: Entry, options: Mapping[str, Any]) -> Dataset:
    """A data set of the catalogue."""
    found = locate(entry.ways)
    if found is None:
        places = " and ".join(str(root) for root in roots())
        raise ValueError(
            f"Data: {entry.name} is not here; {entry.get} ({entry.home}; looked in {places})."
        )
    data = read(found.way.reader, entry.name, found.where, {**found.way.settings, **options})
    source = "; ".join(text for text in (entry.home, found.way.part) if text)
    return dataclasses.replace(data, name=entry.name, licence=entry.licence, source=source)


def read(reader: str, name: str, where: Path | str, options: Mapping[str, Any]) -> Dataset:
    """Call "module:function" with the place and the options that it knows."""
    module, _, function = reader.partition(":")
    call: Reader = getattr(import_module(module), function)
    check_names(f"Data {name}", options, list(inspect.signature(call).parameters)[1:])
    return call(where, **options)
