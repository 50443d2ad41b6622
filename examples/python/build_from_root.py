# SPDX-License-Identifier: Apache-2.0
"""Builds the package in the root of the repository: a tool that builds calls the functions of scikit-build-core there."""

import os
import sys
from pathlib import Path

_root = Path(__file__).resolve().parents[2]
if not (_root / "include" / "reprise").is_dir():
    sys.exit("reprise: this folder is no part of the repository: run `pip install .` in the root of the repository")
os.chdir(_root)

from scikit_build_core.build import *  # noqa: E402, F403
