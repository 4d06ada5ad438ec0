"""The room `iwes` touches numpy and nothing else, and offers the names it promises."""

import subprocess
import sys

import iwes

PROMISED = (
    *("entropy", "margin", "disagreement", "loss", "binary_entropy", "draw", "draw_seed", "Draw", "estimate_mean"),
    *("Estimate", "effective_size", "select_subset", "VersionSpace", "baselines"),
)
BASELINES = (
    *("random", "margin", "least_confident", "entropy_topk", "kcenter", "badge", "cluster_margin", "iwes_diverse"),
)


def test_promised_names_are_there() -> None:
    assert set(PROMISED) <= set(iwes.__all__)
    for name in iwes.__all__:
        assert hasattr(iwes, name), name
    for name in BASELINES:
        assert callable(getattr(iwes.baselines, name))


def test_import_brings_in_numpy_and_the_standard_library_only() -> None:
    code = (
        "import sys; import numpy.random; before = set(sys.modules); import iwes; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'numpy'}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['iwes']"
