#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles examples/cuda with the oldest and a new nvcc 13, checks that the programs have device code, and runs them if
# there is a GPU. Installs nvcc from PyPI into build/cuda-venv-VERSION, where it is found again. The exit status is 77 if
# it cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Each line: the versions of nvcc and of the C++ core libraries.
while read -r version libraries; do
  venv=$PWD/build/cuda-venv-$version
  packages=("nvidia-cuda-nvcc==$version" "nvidia-cuda-crt==$version" "nvidia-nvvm==$version"
    "nvidia-cuda-runtime==$version" "nvidia-cuda-cccl==$libraries" nvidia-cuda-cuobjdump==13.5.37)

  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  if ! "$venv/bin/pip" install --quiet "${packages[@]}"; then
    echo "not run: pip cannot install ${packages[0]}" >&2
    exit 77
  fi
  root=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/nvidia/cu13
  program=$venv/self_test

  # sm_75 and sm_90: the oldest architecture of this nvcc, and a server's.
  "$root/bin/nvcc" -std=c++20 -O1 -Xcompiler -Wall,-Wextra,-Werror -Werror all-warnings \
    -gencode arch=compute_75,code=sm_75 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 \
    -Iinclude examples/cuda/self_test.cu -o "$program" -L"$root/lib" --cudart static

  listed=$("$root/bin/cuobjdump" --list-elf "$program")
  for architecture in sm_75 sm_90; do
    grep -q "$architecture" <<<"$listed" || { echo "no device code for $architecture: $listed" >&2; exit 1; }
  done
  echo "nvcc $version: compiled for sm_75 and sm_90"

  status=0
  "$program" || status=$?
  [ "$status" -eq 77 ] || [ "$status" -eq 0 ] || exit "$status"
done <<'VERSIONS'
13.0.88 13.0.85
13.5.37 13.3.5.0.6
VERSIONS
