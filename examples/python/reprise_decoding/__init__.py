# SPDX-License-Identifier: Apache-2.0
"""Drafts for speculative decoding without a draft model.

The modules transformers, llama_cpp, vllm, sglang, onnxruntime_genai and mlx_lm connect the package to engines.
Drafter is for other engines that own the decoding loop, BatchDrafter for engines that also run several sequences in
each pass, and Session for loops of your own. request() has the settings and the counts of one request.
"""

from ._batch import BatchDrafter
from ._costs import CostCurve
from ._drafter import Drafter
from ._errors import ArgumentError, Error, NoMemoryError, OrderError
from ._library import UNLIMITED
from ._library import VERSION as __version__
from ._memory import Memory
from ._options import HeadCost, Options
from ._request import Request, request
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
    "HeadCost",
    "Memory",
    "NoMemoryError",
    "Options",
    "OrderError",
    "Pass",
    "Request",
    "Session",
    "Statistics",
    "__version__",
    "request",
]
