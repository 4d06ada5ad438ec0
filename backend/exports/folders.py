"""Formats of many files: a folder of images that training scripts read as it is, and a data set of Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from backend.exports import tables
from backend.exports.class_folders import class_folders
from backend.exports.pictures import Picture
from backend.exports.record import clean, columns_of
from backend.exports.trees import Tree
from iwes.training_set.columns import COLUMNS

SHARD_BYTES = 32 * 2**20
"""Of one Parquet file, which is made in memory, before compression."""
ROW_BYTES = 4096
"""About what a row takes in memory besides its image."""
TABLE = "metadata.csv"
"""What Hugging Face's imagefolder looks for: a file's name and whatever else is known of it."""


def write_imagefolder(tree: Tree, pictures: Iterable[Picture], classes: Sequence[str]) -> dict[str, Any]:
    """CLASS/TASK.EXT with the images' own bytes, and a table with their weights. Returns what the manifest adds."""
    folders = class_folders(classes)
    with TemporaryDirectory(prefix="iwes-export-") as folder:
        table = Path(folder, TABLE)
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = tables.csv_writer(file, ["file_name", *COLUMNS])
            for picture in pictures:
                name = f"{folders[picture.row.class_name]}/{picture.row.task}.{picture.suffix}"
                tree.add(name, picture.content)
                writer.writerows((name, *cells) for cells in tables.cells(columns_of([picture.record])))
        tree.add(TABLE, table)
    return {"folders": {folder: name for name, folder in folders.items()}}


def write_huggingface(tree: Tree, pictures: Iterable[Picture], classes: Sequence[str]) -> dict[str, Any]:
    """data/train-NNNNN.parquet as `datasets` itself would write it: images inside, the class as a ClassLabel."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    numbers = {name: number for number, name in enumerate(classes)}
    names = [clean(name) for name in classes]
    schema = _hugging_schema(names)
    for shard, some in enumerate(_shards(pictures)):
        records = [picture.record for picture in some]
        plain = arrow.Table.from_batches([tables.batch(columns_of(records))] if records else [], tables.schema())
        images = [{"bytes": p.content, "path": f"{p.row.task}.{p.suffix}"} for p in some]
        labels = [numbers[picture.row.class_name] for picture in some]
        columns = [arrow.array(images, schema.field("image").type), arrow.array(labels, arrow.int64())]
        columns += [plain["image"], *(plain[name] for name in _PLAIN)]
        content = BytesIO()
        parquet.write_table(arrow.Table.from_arrays(columns, schema=schema), content)
        tree.add(f"data/train-{shard:05}.parquet", content.getvalue())
    tree.add("README.md", _card(names).encode())
    return {}


_PLAIN = [name for name in COLUMNS if name not in ("image", "class")]


def _hugging_schema(names: Sequence[str]) -> Any:
    import pyarrow as arrow

    plain = tables.schema()
    image = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    fields = [("image", image), ("label", arrow.int64()), ("address", arrow.string())]
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(names)}}
    features["address"] = {"_type": "Value", "dtype": "string"}
    features |= {name: _FEATURES[COLUMNS[name]] for name in _PLAIN}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return arrow.schema([*fields, *(plain.field(name) for name in _PLAIN)], metadata)


_FEATURES: dict[str, Any] = {
    "whole": {"_type": "Value", "dtype": "int64"},
    "number": {"_type": "Value", "dtype": "float64"},
    "text": {"_type": "Value", "dtype": "string"},
    "json": {"_type": "Value", "dtype": "string"},
    "time": {"_type": "Value", "dtype": "timestamp[us, tz=UTC]"},
    "wholes": {"_type": "List", "feature": {"_type": "Value", "dtype": "int64"}},
}


def _card(names: Sequence[str]) -> str:
    """What the Hub shows of a data set; JSON is YAML too."""
    configs = [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}]
    return (
        f"---\nconfigs: {json.dumps(configs)}\n---\n\n# Weighted training set\n\n"
        f"{len(names)} classes. Train with the column `weight`; how each came about is in manifest.json.\n"
    )


def _shards(pictures: Iterable[Picture]) -> Iterator[list[Picture]]:
    some: list[Picture] = []
    size, written = 0, False
    for picture in pictures:
        some.append(picture)
        size += len(picture.content) + ROW_BYTES
        if size >= SHARD_BYTES:
            yield some
            some, size, written = [], 0, True
    if some or not written:
        yield some  # an empty one, rather than none: it holds the features
