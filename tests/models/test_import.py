"""The package is light to import: what needs torch lives in its modules."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_does_not_import_torch() -> None:
    program = "import sys, models; print([name for name in ('torch', 'numpy', 'PIL') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
