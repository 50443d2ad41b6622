# SPDX-License-Identifier: Apache-2.0
# Runs examples/fleet/server.cpp: without a corpus, with one that a manifest names, and with arguments that it refuses.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER}/published)
file(WRITE ${FOLDER}/requests "Lisbon\nOslo\n")

function(serve status tenant)
  execute_process(
    COMMAND ${SERVER} published snapshots ${tenant} ${ARGN}
    WORKING_DIRECTORY ${FOLDER}
    INPUT_FILE ${FOLDER}/requests
    OUTPUT_VARIABLE out
    ERROR_VARIABLE error
    RESULT_VARIABLE result
  )
  if(NOT result EQUAL status)
    message(FATAL_ERROR "${tenant} ${ARGN}: exit status ${result}, expected ${status}: ${out}${error}")
  endif()
  set(text "${out}${error}" PARENT_SCOPE)
endfunction()
function(expect pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern} in: ${text}")
  endif()
endfunction()

serve(0 north a)
expect("^{\"place\": \"Lisbon\", \"generation\": 0, \"tokens\": 101, \"passes\": [0-9]+}\n{\"place\": \"Oslo\"")
execute_process(
  COMMAND ${INDEX} build --vocabulary 128 --fingerprint 7 --output ../published/one.corpus north
  WORKING_DIRECTORY ${FOLDER}/snapshots
  COMMAND_ERROR_IS_FATAL ANY
)
file(WRITE ${FOLDER}/published/manifest.json "{\"generation\": 1, \"file\": \"one.corpus\"}\n")
# The corpus has both answers, so a new server needs a few passes for each.
serve(0 south a)
expect("\"generation\": 1, \"tokens\": 101, \"passes\": [0-9]}\n.*\"generation\": 1, \"tokens\": 99, \"passes\": [0-9]}\n$")

serve(2 north)
expect("^server: usage: server PUBLISHED SNAPSHOTS TENANT NAME")
serve(2 ../north a)
expect("TENANT and NAME are names of files")
serve(1 north a --private)
expect("tokenizer")
file(WRITE ${FOLDER}/snapshots/north/a.snapshot "damaged")
serve(1 north a)
expect("snapshot")
file(WRITE ${FOLDER}/requests "Málaga\n")
serve(2 south b)
expect("outside ASCII")
