"""From image files to batches. Replace `Images` with your own data: a batch of indices in, a batch of tensors out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torch.utils.data import Dataset

from batches import BadData, BatchKey
from config import Config

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}


@dataclass(frozen=True)
class Preprocessing:
    """What the training split decides about every image. It travels in the checkpoint."""

    classes: list[str]
    image_size: int

    @classmethod
    def fit(cls, config: Config) -> "Preprocessing":
        folder = config.data_dir / "train"
        classes = sorted({file.parent.name for file in image_files(folder)})
        empty = [path.name for path in sorted(folder.glob("[!.]*/")) if path.is_dir() and path.name not in classes]
        if empty:
            raise SystemExit(f"{folder / empty[0]} holds no image: put some there, or delete the folder")
        if len(classes) == 1:
            raise SystemExit(f"{folder} holds one class, {classes[0]}: there is nothing to tell apart")
        return cls(classes, config.image_size)


class Images(Dataset[tuple[Tensor, Tensor]]):
    """data_dir/SPLIT/CLASS/*.png, by whole batches: images (N, 3, S, S) in [0, 1], labels (N,), class numbers."""

    def __init__(self, config: Config, split: str, preprocessing: Preprocessing, *, augment: bool = False) -> None:
        folder = config.data_dir / split
        self.files = image_files(folder)
        strangers = {file.parent.name for file in self.files} - set(preprocessing.classes)
        if strangers:
            raise SystemExit(f"{folder}: no training images of {', '.join(sorted(strangers))}")
        labels = [preprocessing.classes.index(file.parent.name) for file in self.files]
        self.labels = torch.tensor(labels)
        self.size = preprocessing.image_size
        self.augment, self.flip, self.shift = augment, config.flip, config.shift

    def __getitem__(self, key: BatchKey) -> tuple[Tensor, Tensor]:
        seed, indices = key
        images = read_images([self.files[i] for i in indices], self.size)
        if self.augment:
            # Its seed comes with the batch: the same changes with any number of workers, and after a resume.
            images = vary(images, self.flip, self.shift, torch.Generator().manual_seed(seed))
        return images, self.labels[indices]

    def __len__(self) -> int:
        return len(self.files)


def vary(images: Tensor, flip: bool, shift: int, generator: torch.Generator) -> Tensor:
    """Each image (N, C, H, W) mirrored or not, and moved by up to `shift` pixels each way, zeros coming in."""
    n, channels, height, width = images.shape
    if flip:
        mirrored = torch.rand(n, generator=generator) < 0.5
        images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
    padded = torch.nn.functional.pad(images, (shift, shift, shift, shift))
    top, left = torch.randint(0, 2 * shift + 1, (2, n), generator=generator)
    rows = (top[:, None] + torch.arange(height))[:, None, :, None]
    columns = (left[:, None] + torch.arange(width))[:, None, None, :]
    return padded[torch.arange(n)[:, None, None, None], torch.arange(channels)[None, :, None, None], rows, columns]


def read_images(files: Sequence[Path], size: int) -> Tensor:
    """The images as (N, 3, size, size) in [0, 1]: the same for training, evaluate.py and predict.py."""
    pixels = np.stack([read_image(file, size) for file in files])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


def read_image(file: Path, size: int) -> np.ndarray:
    """The image as (size, size, 3) bytes, whatever its size and mode."""
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image)  # cameras store how they were held
            if upright.mode.startswith("I"):  # 16 bits a pixel, which convert() would cut off at 255
                upright = Image.fromarray((np.asarray(upright) // 256).astype(np.uint8))
            return np.asarray(upright.convert("RGB").resize((size, size), Image.Resampling.BILINEAR))
    except FileNotFoundError:
        raise BadData(f"{file} does not exist: see its name") from None
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise BadData(f"{file} cannot be read as an image ({reason}): replace it or delete it") from None


def image_files(folder: Path) -> list[Path]:
    """The images in the folders of `folder`, sorted; hidden files and folders are none."""
    files = sorted(file for file in folder.glob("[!.]*/[!.]*") if file.suffix.lower() in SUFFIXES)
    if not files:
        raise SystemExit(f"no images: expected {folder / 'CLASS' / '*.png'} (a sample: python sample_data.py)")
    return files
