"""`python -m benchmarks.learning`: runs the parts asked for, one after the other."""

from __future__ import annotations

import importlib
import logging
import sys
import tempfile
from pathlib import Path

from benchmarks.learning.options import Options, names, parser
from benchmarks.learning.report import Report


def main() -> None:
    asked = parser()
    given = asked.parse_args()
    try:
        parts = names(given.only)
    except ValueError as error:
        asked.error(str(error))
    logging.getLogger("models.pretrained").setLevel(logging.ERROR)  # random weights are no surprise here
    with tempfile.TemporaryDirectory(prefix="iwes-benchmark-") as folder:
        scratch = (given.scratch or Path(folder)).resolve()
        values = {name: value for name, value in vars(given).items() if name not in ("only", "scratch")}
        options = Options(only=parts, scratch=scratch, **values)
        report = Report()
        _threads(options)
        for name in parts:
            report.begin(name)
            importlib.import_module(f"benchmarks.learning.{name}").run(options, report)
            report.end()
            if options.json is not None:
                report.save(options.json)


def _threads(options: Options) -> None:
    import torch

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} CPU threads", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
