"""Write the sample data set: sources of Python's standard library, some modules to train on and others to validate."""

import sysconfig
from pathlib import Path

MODULES = {"train": "[c-f]*.py", "val": "w*.py"}  # by their first letter: about 900 kB and 90 kB


def write_sample(data_dir: Path) -> dict[str, int]:
    """The number of characters in each split."""
    library = Path(sysconfig.get_path("stdlib"))
    data_dir.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for split, pattern in MODULES.items():
        sources = [file.read_text(encoding="utf-8") for file in sorted(library.glob(pattern))]
        if not sources:
            raise SystemExit(f"{library} holds no sources of the standard library: use a Python that has them")
        text = "\n".join(sources)
        (data_dir / f"{split}.txt").write_text(text, encoding="utf-8")
        sizes[split] = len(text)
    return sizes


if __name__ == "__main__":
    sizes = write_sample(Path("data"))
    print(f"wrote data/train.txt and data/val.txt: {sizes['train']:,} and {sizes['val']:,} characters")
