# SPDX-License-Identifier: Apache-2.0
"""Drafts for speculative decoding without a draft model.

Drafter is for engines that own the decoding loop, BatchDrafter for engines that also run several sequences in each pass,
Session for loops of your own. The modules llama_cpp, transformers,
vllm, onnxruntime_genai and mlx_lm connect them to these engines.
"""

from ._batch import BatchDrafter
from ._costs import CostCurve
from ._drafter import Drafter
from ._errors import ArgumentError, Error, NoMemoryError, OrderError
from ._history import History
from ._library import UNLIMITED
from ._library import VERSION as __version__
from ._session import Commit, Pass, Session
from ._statistics import Statistics

__all__ = [
    "UNLIMITED",
    "ArgumentError",
    "BatchDrafter",
    "Commit",
    "CostCurve",
    "Drafter",
    "Error",
    "History",
    "NoMemoryError",
    "OrderError",
    "Pass",
    "Session",
    "Statistics",
    "__version__",
]
