"""docs/data.md says of data sets and models what the code says."""

from pathlib import Path

from confide.data.catalogue import CATALOGUE
from confide.data.partitions import PARTITIONS
from confide.models import MODELS, build

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def data_rows() -> list[str]:
    return [f"| `{e.name}` | {e.what} | {e.records} | {e.licence} |" for e in CATALOGUE.values()]


def model_rows() -> list[str]:
    rows: list[str] = []
    for name, model in MODELS.items():
        size = sum(p.numel() for p in build(name, *model.example, 0).parameters())
        rows.append(f"| `{name}` | {model.what} | {model.source} | {size:,} |")
    return rows


def test_the_page_has_every_data_set_partition_and_model() -> None:
    lines = PAGE.read_text().splitlines()
    assert not [row for row in data_rows() + model_rows() if row not in lines]
    assert not [kind for kind in PARTITIONS if not any(f"| `{kind}` |" in line for line in lines)]
