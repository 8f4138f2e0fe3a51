"""Write the sample data set: scikit-learn's hand-written digits as PNG files, one folder per class."""

from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def write_sample(data_dir: Path) -> None:
    images, digits = load_digits(return_X_y=True)
    splits = train_test_split(images, digits, test_size=0.2, stratify=digits, random_state=0)
    for split, xs, ys in (("train", splits[0], splits[2]), ("val", splits[1], splits[3])):
        for i, (pixels, digit) in enumerate(zip(xs, ys, strict=True)):
            save_png(pixels, data_dir / split / str(digit) / f"{i:04}.png")


def save_png(pixels, path: Path) -> None:
    """`pixels` are 64 numbers from 0 to 16."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((pixels.reshape(8, 8) * 255 / 16).round().astype("uint8")).save(path)


if __name__ == "__main__":
    write_sample(Path("data"))
    print("wrote data/train and data/val: 1797 images of 8 x 8 pixels")
