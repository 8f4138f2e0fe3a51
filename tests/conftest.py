"""Settings of all tests. Imports nothing of Plainloop: the GPU tests run where only torch and a few wheels are."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The tests run side by side, one process a core: more threads each would only get in each other's way.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["MPLBACKEND"] = "Agg"
# Nobody's own settings for Copier: they would change the defaults.
os.environ["COPIER_SETTINGS_PATH"] = str(ROOT / "tests" / "copier-settings.yml")


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A copy of the template as it stands, without git: what Copier makes of it is what stands there."""
    folder = tmp_path_factory.mktemp("template")
    shutil.copy(ROOT / "copier.yml", folder)
    shutil.copytree(ROOT / "template", folder / "template")
    return folder
