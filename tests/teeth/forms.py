"""The project forms into which the faults are put: between them every task, and every form that the loop can take."""

from typing import Any

FORMS: dict[str, dict[str, Any]] = {
    "images": {},
    "images fp16": {
        "amp": "fp16",
        "optimizer": "sgd",
        "scheduler": "cosine",
        "gradient_accumulation": True,
        "ema": True,
        "monitor": "metric",
    },
    "masks": {"task": "image-segmentation", "loss": "cross-entropy-dice", "scheduler": "polynomial", "ema": True},
    "image values": {
        "task": "image-regression",
        "loss": "huber",
        "scheduler": "one-cycle",
        "gradient_clipping": "value",
    },
    "table binary": {
        "task": "tabular-classification",
        "labels": "binary",
        "loss": "weighted-bce",
        "scheduler": "plateau",
        "early_stopping": True,
        "monitor": "metric",
    },
    "table fp16": {"task": "tabular-regression", "optimizer": "sgd", "scheduler": "step", "amp": "fp16"},
    "table L-BFGS": {"task": "tabular-classification", "loss": "weighted-cross-entropy", "optimizer": "lbfgs"},
    "texts": {
        "task": "text-classification",
        "labels": "multilabel",
        "scheduler": "plateau",
        "gradient_accumulation": True,
        "early_stopping": True,
    },
    "text values": {"task": "text-regression", "loss": "gaussian-nll", "scheduler": "exponential"},
    "words": {"task": "token-classification", "gradient_accumulation": True, "amp": "fp16", "monitor": "metric"},
    "language": {
        "task": "language-modeling",
        "optimizer": "muon",
        "scheduler": "warmup-stable-decay",
        "gradient_accumulation": True,
    },
    "series": {
        "task": "time-series-forecasting",
        "loss": "quantile",
        "optimizer": "schedule-free-adamw",
        "scheduler": "constant",
        "gradient_clipping": "off",
    },
}
