"""Write the sample data set: docstrings of Python's standard library, labelled by the package that they come from."""

import ast
import sysconfig
from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split

PACKAGES = ["asyncio", "email", "http", "importlib", "logging", "multiprocessing", "unittest", "xml"]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def write_sample(data_dir: Path) -> dict[str, pd.DataFrame]:
    library = Path(sysconfig.get_path("stdlib"))
    rows = {}
    for package in PACKAGES:
        for file in sorted((library / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
                # A text once: its copies would land on both sides of the split.
                if text and text not in rows:
                    rows[text] = {"text": text, "label": package}
    if not rows:
        raise SystemExit(f"{library} holds no sources of the standard library: use a Python that has them")
    table = pd.DataFrame(rows.values())
    train, val = train_test_split(table, test_size=0.2, stratify=table["label"], random_state=0)
    data_dir.mkdir(parents=True, exist_ok=True)
    train.to_csv(data_dir / "train.csv", index=False)
    val.to_csv(data_dir / "val.csv", index=False)
    return {"train": train, "val": val}


if __name__ == "__main__":
    splits = write_sample(Path("data"))
    print(f"wrote data/train.csv and data/val.csv: {len(splits['train'])} and {len(splits['val'])} docstrings")
