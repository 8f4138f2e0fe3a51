"""The order of the batches, and the loaders that bring them. Own data goes into data.py and leaves this as it is."""

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from config import Config
from stopping import leave_signals_to_the_parent, signals_held

BatchKey = tuple[int, list[int]]  # a seed for what is random in the batch, and the windows in it


class BadData(Exception):
    """A file that cannot be used. The message is one line, which names the file and the way out."""

    def __init__(self, message: str) -> None:
        # From a worker process it comes with that process's traceback in front.
        super().__init__(message.rpartition("batches.BadData: ")[2].strip())


class EpochBatches(Sampler[BatchKey]):
    """A new shuffle each epoch, cut into batches.

    Order and seeds follow from (seed, epoch, batch) alone. So a resumed run starts in the middle of an
    epoch at no cost, and gets the same batches with any number of workers.
    """

    def __init__(self, size: int, batch_size: int, seed: int) -> None:
        self.size, self.batch_size, self.seed = size, batch_size, seed
        self.start_at(epoch=0, batch=0)

    def start_at(self, epoch: int, batch: int) -> None:
        self.epoch, self.first = epoch, batch

    def __iter__(self) -> Iterator[BatchKey]:
        shuffle = torch.Generator().manual_seed(mix(self.seed, self.epoch))
        order = torch.randperm(self.size, generator=shuffle)
        for batch, indices in enumerate(order.split(self.batch_size)):
            if batch >= self.first:
                yield mix(self.seed, self.epoch, batch), indices.tolist()

    def __len__(self) -> int:
        return -(-self.size // self.batch_size)


class Loader(DataLoader):
    """A DataLoader for which bad data, found in this process or in a worker, ends the run with its one line."""

    def __iter__(self) -> Iterator[Any]:
        try:
            with signals_held():  # one to the process group would end a worker that does not ignore it yet
                batches = super().__iter__()
            yield from batches
        except BadData as error:
            raise SystemExit(str(error)) from None


def mix(*numbers: int) -> int:
    """A 63-bit seed from several numbers; their sum would be the same for many of them."""
    return int.from_bytes(hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()) >> 1


def training_loader(dataset: Dataset, config: Config) -> Loader:
    """Shuffled batches, the last one of an epoch smaller where the numbers do not divide."""
    batches = EpochBatches(len(dataset), config.batch_size // config.accumulate, config.seed)
    return _loader(dataset, batches, config)


def evaluation_loader(dataset: Dataset, config: Config) -> Loader:
    """Every one of the windows once, in order."""
    # Twice the batch: without a graph to keep, the same memory holds more.
    batches = [(0, part.tolist()) for part in torch.arange(len(dataset)).split(2 * config.batch_size)]
    return _loader(dataset, batches, config)


def _loader(dataset: Dataset, batches: Any, config: Config) -> Loader:
    return Loader(
        dataset,
        sampler=batches,
        batch_size=None,  # the data set makes whole batches: no collating, sample by sample
        # Its own: a loader that draws from the global generator would change the model's dropout.
        generator=torch.Generator(),
        num_workers=config.num_workers,
        persistent_workers=config.num_workers > 0,
        worker_init_fn=leave_signals_to_the_parent,
        # Copies from pinned memory run beside the GPU's work.
        pin_memory=torch.cuda.is_available() or torch.xpu.is_available(),
    )
