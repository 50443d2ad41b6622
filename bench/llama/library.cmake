# SPDX-License-Identifier: Apache-2.0
set(reprise_llama_folder ${CMAKE_CURRENT_LIST_DIR})

# All of reprise-llama except main(). `engine` is llama.cpp, or its stand-in in tests.
function(reprise_add_llama_library name engine)
  set(sources)
  foreach(
    source IN ITEMS
    answer
    batch_compare
    batch_decode
    batch_engine
    batch_report
    batch_sequence
    compare
    compare_json
    compare_table
    conversation
    engine
    flips
    flips_report
    generate
    inputs
    loops
    memory_file
    option_rows
    options
    passes
    predict
    profile
    profile_report
    record
    tool
    trace_writer
    verdict
    vocabulary
  )
    list(APPEND sources ${reprise_llama_folder}/${source}.cpp)
  endforeach()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${engine} reprise-replay-lib)
  # The adapter is an example to copy; this tool runs the same file.
  target_include_directories(${name} PUBLIC ${reprise_llama_folder} ${PROJECT_SOURCE_DIR}/examples/llama_cpp)
endfunction()
