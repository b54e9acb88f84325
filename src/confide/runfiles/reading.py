"""Where a run file comes from: a file, a preset, or the words of a command."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from confide.data.settings import nearest
from confide.methods import CATALOGUE

Raw = dict[str, Any]
QUICK_START = "quickstart"


def presets() -> list[str]:
    """The names of the run files that come with the package."""
    found = (files("confide") / "presets").iterdir()
    return sorted(p.name.removesuffix(".toml") for p in found if p.name.endswith(".toml"))


def read(where: str) -> Raw:
    """A preset or a file as an unchecked table; its Python and data files are found beside it."""
    if where in presets():
        return tomllib.loads((files("confide") / "presets" / f"{where}.toml").read_text("utf-8"))
    path = Path(where)
    if not where.endswith(".toml"):
        raise ValueError(
            f"Run file: {where!r} is unknown, allowed are FILE.toml and the presets "
            f"{', '.join(presets())}.{nearest(where, presets())}"
        )
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"Run file: {where!r} does not exist, allowed is a TOML file.") from None
    except OSError as why:
        raise ValueError(f"Run file: {where!r} cannot be read: {why.strerror}.") from why
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise ValueError(f"Run file: {where!r} is not TOML: {one_line(why)}.") from why
    return located(raw, path.parent)


def one_line(why: BaseException) -> str:
    """What went wrong, without a line break and without a full stop at its end."""
    return " ".join(str(why).split()).rstrip(".")


def located(raw: Raw, folder: Path) -> Raw:
    """The table with names of files that lie beside it as paths that can be opened from here."""

    def place(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        path, colon, inside = name.rpartition(":") if ".py:" in name else (name, "", "")
        beside = folder / path
        is_file = bool(path) and not Path(path).exists() and beside.exists()
        return f"{beside}{colon}{inside}" if is_file and path not in CATALOGUE else name

    out = dict(raw)
    if isinstance(out.get("methods"), list):
        out["methods"] = [place(name) for name in cast("list[Any]", out["methods"])]
    for part in ("data", "model"):
        own: Any = out.get(part)
        if isinstance(own, Mapping) and "name" in own:
            out[part] = {**cast("Raw", own), "name": place(own["name"])}
    if isinstance(out.get("method"), Mapping):
        out["method"] = {place(k): v for k, v in cast("Raw", out["method"]).items()}
    return out


def moved(table: Raw, *, public: bool) -> Raw:
    """For a run directory: files by their whole path in private, by their bare name in public."""

    def place(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        path, colon, inside = name.rpartition(":") if ".py:" in name else (name, "", "")
        if not Path(path).exists():
            return name
        return f"{Path(path).name if public else Path(path).resolve()}{colon}{inside}"

    out: Raw = {**table, "methods": [place(name) for name in table["methods"]]}
    for part in ("data", "model"):
        own: Raw = out.get(part, {})
        if "name" in own:
            out[part] = {**own, "name": place(own["name"])}
    return out
