"""What newer versions of torch have given up."""

import re

import pytest

from plainloop.catalogue import ROOT

GIVEN_UP = {
    "verbose=": r"\bverbose\s*=",
    "torch.cuda.amp": r"torch\.cuda\.amp|torch\.cpu\.amp",
    "torch.load without weights_only": r"torch\.load\((?!.*weights_only=True)",
    "BCELoss": r"\bBCELoss\(|\bbinary_cross_entropy\(",
}


@pytest.mark.parametrize("pattern", GIVEN_UP.values(), ids=GIVEN_UP)
def test_the_template_does_not_use_it(pattern):
    templates = sorted((ROOT / "template").rglob("*.jinja"))
    assert len(templates) > 100
    found = [path for path in templates if re.search(pattern, path.read_text(encoding="utf-8"))]
    assert not found
