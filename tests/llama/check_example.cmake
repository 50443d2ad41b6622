# SPDX-License-Identifier: Apache-2.0
# Runs examples/llama_cpp over the stand-in for llama.cpp: the same text with drafts as without; help;
# and a sentence for what cannot be used.
set(model ${FOLDER}/example-model.gguf)
file(WRITE ${model} "llama-stand-in 1\nvocabulary 300\n")

include(${CMAKE_CURRENT_LIST_DIR}/../support/run_program.cmake)

run(0 --help)
expect("${out}" "usage: llama_cpp")
run(0 --max-tokens 100 ${model} abcabcabcabc)
set(drafted "${out}")
expect("${error}" "^100 tokens in [0-9]+ passes") # how many depends on what passes take
run(0 --plain --max-tokens 100 ${model} abcabcabcabc)
expect("${error}" "^100 tokens in 100 passes")
if(NOT drafted STREQUAL out)
  message(FATAL_ERROR "with drafts: ${drafted}; without: ${out}")
endif()
run(2)
expect("${error}" "give the path of a GGUF file and a prompt")
run(2 ${model} "")
expect("${error}" "give the path of a GGUF file and a prompt")
run(2 --fast ${model} abc)
expect("${error}" "there is no option --fast")
run(2 --max-tokens 3x ${model} abc)
expect("${error}" "--max-tokens needs a whole number above 0")
run(2 ${FOLDER}/none.gguf abc)
expect("${error}" "none.gguf: llama.cpp cannot load it")
