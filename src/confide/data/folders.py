"""Images as files: a folder of one's own, Medical MNIST, LFW and UTKFace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.dataset import Dataset
from confide.data.idx import PARTS, read_own
from confide.data.pictures import COLOUR, GREY, faces, image_dataset, split_images
from confide.data.places import needed, present
from confide.data.settings import whole

Bytes = NDArray[np.uint8]
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
UTKFACE = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\.jpg(\.chip\.jpg)?$")
LFW_SIDE, LFW_LEAST = 32, 20
LFW_CROP = 0.5  # the middle half of the picture holds the face


def read_folder(
    folder: Path,
    *,
    side: int | None = None,
    grey: bool | None = None,
    test: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """A folder with one sub-folder of images for each class, or with such folders train and test.

    `side` makes every image a square of so many pixels; without it they must have one size. A
    folder with the four idx files of MNIST is read as these.
    """
    if all(present(folder, part) for part in PARTS):
        return read_own(folder)
    thing = f"Data {folder.name}"
    if side is not None:
        whole(thing, "side", side)
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        classes = classes_of(thing, folder / "train")
        sides = [labelled(thing, folder / part, classes) for part in ("train", "test")]
        grey = all_grey(thing, sides[0][0]) if grey is None else grey
        train, held = ((load_images(thing, files, side, grey), y) for files, y in sides)
        if train[0].shape[1:] != held[0].shape[1:]:
            raise ValueError(
                f"{thing}: images of train have the size {train[0].shape[1:3]} and of test "
                f"{held[0].shape[1:3]}, allowed is one size, or say side."
            )
        return image_dataset(folder.name, train, held, classes, GREY if grey else COLOUR)
    classes = classes_of(thing, folder)
    files, y = labelled(thing, folder, classes)
    grey = all_grey(thing, files) if grey is None else grey
    images = load_images(thing, files, side, grey)
    return split_images(folder.name, (images, y), classes, GREY if grey else COLOUR, test, seed)


def read_medical(folder: Path, *, test: float = 0.2, seed: int = 0) -> Dataset:
    """Medical MNIST: one folder of grey 64x64 pictures for each class."""
    return read_folder(folder, grey=True, test=test, seed=seed)


def read_lfw(folder: Path, *, least: int = LFW_LEAST, test: float = 0.25, seed: int = 0) -> Dataset:
    """Labeled Faces in the Wild: the middle of each picture, 32x32, of people with enough."""
    thing = "Data lfw"
    whole(thing, "least", least, 2)
    people = [name for name in classes_of(thing, folder) if len(images_in(folder / name)) >= least]
    if not people:
        raise ValueError(f"{thing}: least = {least}, allowed are numbers that some people have.")
    files, y = labelled(thing, folder, tuple(people))
    images = load_images(thing, files, LFW_SIDE, False, LFW_CROP)
    columns = {"person": y}
    return split_images("lfw", (images, y), tuple(people), COLOUR, test, seed, columns)


def read_utkface(
    folder: Path, *, target: str = "age", side: int = 32, test: float = 0.2, seed: int = 0
) -> Dataset:
    """UTKFace: file names say age, gender and race; the few others are left out."""
    thing = "Data utkface"
    named = [(path, UTKFACE.match(path.name)) for path in images_in(folder)]
    kept = [(path, match) for path, match in named if match]
    if not kept:
        raise ValueError(
            f"{thing}: {folder} has no files such as 25_0_2_20170116174525125.jpg.chip.jpg."
        )
    age, gender, race = np.array([match.groups()[:3] for _, match in kept], np.int64).T
    images = load_images(thing, [path for path, _ in kept], whole(thing, "side", side), False)
    return faces(images, age, gender, race, target, test, seed)


def classes_of(thing: str, folder: Path) -> tuple[str, ...]:
    """The names of the sub-folders, in order."""
    names = tuple(sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[0] != "."))
    if not names:
        raise ValueError(
            f"{thing}: {folder} has no sub-folders, allowed is one with images for each class."
        )
    return names


def images_in(folder: Path) -> list[Path]:
    """The image files of a folder, in order."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in ENDINGS)


def labelled(
    thing: str, folder: Path, classes: tuple[str, ...]
) -> tuple[list[Path], NDArray[np.int64]]:
    """All image files with the position of their class."""
    strange = sorted(set(classes_of(thing, folder)) - set(classes)) if folder.name == "test" else []
    if strange:
        raise ValueError(f"{thing}: class {strange[0]!r} is in test and not in train.")
    files: list[Path] = []
    labels: list[int] = []
    for k, name in enumerate(classes):
        there = images_in(folder / name) if (folder / name).is_dir() else []
        if not there and folder.name != "test":
            raise ValueError(
                f"{thing}: {folder / name} has no images, allowed are files ending in "
                f"{', '.join(ENDINGS)}."
            )
        files += there
        labels += [k] * len(there)
    return files, np.array(labels, np.int64)


def all_grey(thing: str, files: Sequence[Path]) -> bool:
    """Whether no image has colours."""
    pillow: Any = needed("PIL.Image", thing)
    for path in files:
        with _opened(thing, pillow, path) as image:
            if image.mode not in ("1", "L", "I;16"):
                return False
    return True


def load_images(
    thing: str, files: Sequence[Path], side: int | None, grey: bool, crop: float = 1.0
) -> Bytes:
    """Images (n, h, w) or (n, h, w, 3) of one size."""
    pillow: Any = needed("PIL.Image", thing)
    images: list[Bytes] = []
    for path in files:
        with _opened(thing, pillow, path) as opened:
            try:
                image = opened.convert("L" if grey else "RGB")
            except OSError as why:
                raise ValueError(f"{thing}: {path} is damaged ({why}).") from why
        width, height = image.size
        if crop < 1:
            left, top = (round(length * (1 - crop) / 2) for length in (width, height))
            image = image.crop((left, top, width - left, height - top))
        if side is not None:
            image = image.resize((side, side), pillow.Resampling.BOX)
        images.append(np.asarray(image, np.uint8))
        if images[-1].shape != images[0].shape:
            raise ValueError(
                f"{thing}: {path} has the size {images[-1].shape[:2]} and the first image "
                f"{images[0].shape[:2]}, allowed is one size, or say side."
            )
    return np.stack(images)


def _opened(thing: str, pillow: Any, path: Path) -> Any:
    try:
        return pillow.open(path)
    except OSError as why:
        raise ValueError(f"{thing}: {path} is not an image that Pillow can read.") from why
