"""Which samples come, in which order, and what is known of them."""

from teeth.code import Code
from teeth.faults.registry import Facts, fault

ORDERS = "test_training.py::test_every_epoch_takes_every_sample_once_in_a_new_order"
VARY = "test_training.py::test_only_training_data_vary"
DECIDE = "test_training.py::test_validation_data_decide_nothing"
LOGGED = "test_training.py::test_evaluating_a_checkpoint_gives_what_the_run_logged"
FOLLOW = "test_training.py::test_the_targets_are_the_tokens_that_follow"
WINDOWS = "test_data.py::test_no_window_reaches_across_the_end_of_its_file"
FIRST_TOKEN = "test_training.py::test_the_first_token_of_each_word_has_its_tag"


def augments(facts: Facts) -> bool:
    """Whether training samples are varied."""
    return facts["augments"]


def of_kind(*kinds: str):
    """Whether the data are of one of these kinds."""
    return lambda facts: facts["data_kind"] in kinds


def val_set(facts: Facts) -> str:
    """How train.py makes the validation data."""
    return f'{facts["dataset"]}(config, "val", preprocessing)'


@fault("shuffle off", ORDERS, file="batches.py")
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.randperm(…)", "torch.arange(self.size)")


@fault("the same order in every epoch, by the sampler", ORDERS, file="batches.py")
def _(code: Code, facts: Facts) -> None:
    code.replace("mix(self.seed, self.epoch)", "self.seed")


@fault("the same order in every epoch, by the loop", ORDERS)
def _(code: Code, facts: Facts) -> None:
    code.replace(
        "train_loader.sampler.start_at(progress.epoch, progress.batch)",
        "train_loader.sampler.start_at(0, progress.batch)",
    )


@fault("the sampler never told where to start", ORDERS)
def _(code: Code, facts: Facts) -> None:
    code.remove("train_loader.sampler.start_at(progress.epoch, progress.batch)")


@fault("the same augmentation in every epoch", ORDERS, file="batches.py", possible=augments)
def _(code: Code, facts: Facts) -> None:
    code.replace("mix(self.seed, self.epoch, batch)", "mix(self.seed, batch)")


@fault("the same augmentation in every batch", VARY, file="data.py", possible=augments)
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.Generator().manual_seed(seed)", "torch.Generator().manual_seed(0)")


@fault("augmentation of validation data, by the loop", VARY, possible=augments)
def _(code: Code, facts: Facts) -> None:
    code.replace(val_set(facts), val_set(facts).replace(")", ", augment=True)"))


@fault("augmentation of validation data, by the data", VARY, file="data.py", possible=augments)
def _(code: Code, facts: Facts) -> None:
    code.unwrap("if self.augment")


@fault("evaluation on the training split, by the loop", LOGGED)
def _(code: Code, facts: Facts) -> None:
    code.replace(val_set(facts), val_set(facts).replace("val", "train"))


@fault("evaluation on the training split, by evaluate.py", LOGGED, file="evaluate.py")
def _(code: Code, facts: Facts) -> None:
    code.replace(f"{facts['dataset']}(config, arguments.split, preprocessing)", val_set(facts).replace("val", "train"))


@fault("evaluation on the training split, by the data", DECIDE, file="data.py")
def _(code: Code, facts: Facts) -> None:
    if facts["data_kind"] in ("image", "mask"):
        code.replace("config.data_dir / split", 'config.data_dir / "train"')
    else:
        suffix = "txt" if facts["data_kind"] == "language" else "csv"
        code.replace(f'f"{{split}}.{suffix}"', f'"train.{suffix}"')


@fault("validation rows among the training rows", DECIDE, file="data.py", possible=of_kind("table", "text", "words"))
def _(code: Code, facts: Facts) -> None:
    both = 'pd.concat([table, read_table(config.data_dir / "val.csv")], ignore_index=True)'
    code.add(
        f'if split == "train": table = {both}',
        after="table = read_table(file)",
        inside="def __init__(…) -> None",
    )


# The classes of masks stand in a file of their own.
@fault(
    "statistics, vocabulary or classes of all data",
    DECIDE,
    file="data.py",
    possible=lambda facts: facts["data_kind"] != "mask",
)
def _(code: Code, facts: Facts) -> None:
    fit = "def fit(…) -> …"
    if facts["data_kind"] == "language":
        train = 'read_lines(config.data_dir / "train.txt")'
        code.replace(train, f"{train} + {train.replace('train', 'val')}", inside=fit)
    elif facts["target"] == "real" and facts["data_kind"] == "image":
        code.add(
            'numbers = {**numbers, **{f"val/{k}": v for k, v in read_targets(config.data_dir / "val")[1].items()}}',
            after="target, numbers = read_targets(folder)",
            inside=fit,
        )
    elif facts["data_kind"] == "image":
        code.replace("image_files(folder)", 'image_files(folder) + image_files(config.data_dir / "val")', inside=fit)
    else:
        code.add(
            'table = pd.concat([table, read_table(config.data_dir / "val.csv")], ignore_index=True)',
            after="table = read_table(…)",
            inside=fit,
        )


@fault("the target is the token itself", FOLLOW, file="data.py", possible=of_kind("language"))
def _(code: Code, facts: Facts) -> None:
    code.rewrite("return window[:, :-1], next_tokens", "return window[:, 1:], next_tokens")


@fault(
    "targets shifted twice, by the loop",
    "test_training.py::test_losses_are_sums_divided_once",
    possible=of_kind("language"),
)
def _(code: Code, facts: Facts) -> None:
    code.replace("criterion(…)", "criterion(logits[:, :-1].flatten(0, 1), next_tokens[:, 1:].flatten())")


@fault("targets shifted twice, by the data", FOLLOW, file="data.py", possible=of_kind("language"))
def _(code: Code, facts: Facts) -> None:
    code.replace("torch.arange(self.length + 1)", "torch.arange(self.length + 2)")
    code.rewrite(
        "next_tokens = …", "next_tokens = window[:, 2:].masked_fill(positions[:, 2:] >= len(self.ids), IGNORE)"
    )
    code.rewrite("return window[:, :-1], next_tokens", "return window[:, :-2], next_tokens")


@fault(
    "attention sees the future",
    "test_training.py::test_no_position_sees_a_later_token",
    file="model.py",
    possible=of_kind("language"),
)
def _(code: Code, facts: Facts) -> None:
    code.drop("is_causal=True")


@fault("the future begins in the history", WINDOWS, file="data.py", possible=of_kind("series"))
def _(code: Code, facts: Facts) -> None:
    code.replace("windows[:, self.context_length :, 0]", "windows[:, self.context_length - 1 : -1, 0]")


@fault("padding is a target", FOLLOW, file="data.py", possible=of_kind("language"))
def _(code: Code, facts: Facts) -> None:
    code.replace("window[:, 1:].masked_fill(…)", "window[:, 1:]")


@fault("padding is a target", FIRST_TOKEN, file="data.py", possible=of_kind("words"))
def _(code: Code, facts: Facts) -> None:
    code.drop("padding_value=IGNORE")


@fault(
    "padding is a target",
    "test_data.py::test_augmentation_moves_an_image_and_its_mask_together",
    file="data.py",
    possible=of_kind("mask"),
)
def _(code: Code, facts: Facts) -> None:
    code.drop("value=IGNORE")


@fault(
    "padding looked at",
    "test_training.py::test_the_model_looks_both_ways_but_not_at_padding",
    file="model.py",
    possible=of_kind("words"),
)
def _(code: Code, facts: Facts) -> None:
    code.drop("attn_mask=…")


@fault(
    "padding looked at",
    "test_training.py::test_a_text_is_read_as_if_it_stood_alone",
    file="model.py",
    possible=of_kind("text"),
)
def _(code: Code, facts: Facts) -> None:
    code.replace("features.sum(dim=1) / mask.sum(dim=1).clamp(min=1)", "features.mean(dim=1)")
