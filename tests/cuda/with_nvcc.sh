#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles examples/cuda with nvcc, checks that it has device code, and runs it if there is a GPU. Installs nvcc from
# PyPI into build/cuda-venv, where it is found again. The exit status is 77 if it cannot be
# installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=$PWD/build/cuda-venv
packages=(nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
  nvidia-cuda-cccl==13.3.5.0.6 nvidia-cuda-cuobjdump==13.5.37)

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if ! "$venv/bin/pip" install --quiet "${packages[@]}"; then
  echo "not run: pip cannot install ${packages[0]}" >&2
  exit 77
fi
root=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/nvidia/cu13
program=$PWD/build/cuda-venv/self_test

# sm_75 and sm_90: the oldest architecture of this nvcc, and a server's.
"$root/bin/nvcc" -std=c++20 -O1 -Xcompiler -Wall,-Wextra,-Werror -Werror all-warnings \
  -gencode arch=compute_75,code=sm_75 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 \
  -Iinclude examples/cuda/self_test.cu -o "$program" -L"$root/lib" --cudart static

listed=$("$root/bin/cuobjdump" --list-elf "$program")
for architecture in sm_75 sm_90; do
  grep -q "$architecture" <<<"$listed" || { echo "no device code for $architecture: $listed" >&2; exit 1; }
done
echo "compiled for sm_75 and sm_90"

status=0
"$program" || status=$?
[ "$status" -eq 77 ] || exit "$status"
