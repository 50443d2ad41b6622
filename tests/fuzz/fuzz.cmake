# SPDX-License-Identifier: Apache-2.0
# Needs clang. Each fuzzer runs the body of a test.
add_custom_target(fuzzers)
function(reprise_add_fuzzer name file)
  add_executable(fuzz-${name} fuzz/${file}.fuzz.cpp)
  target_link_libraries(fuzz-${name} PRIVATE reprise::reprise)
  target_include_directories(fuzz-${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers fuzz-${name})
endfunction()
foreach(fuzzer IN ITEMS input_files snapshot corpus c_interface)
  reprise_add_fuzzer(${fuzzer} ${fuzzer})
endforeach()
# Random worlds: the header of each kind, and the fault that it finds.
function(reprise_add_world_fuzzer name header fault)
  reprise_add_fuzzer(${name} world)
  target_compile_definitions(
    fuzz-${name} PRIVATE REPRISE_FUZZED_HEADER="support/${header}" REPRISE_FUZZED_FAULT=${fault}
  )
endfunction()
reprise_add_world_fuzzer(lossless world.hpp "describe(run_world(choices))")
reprise_add_world_fuzzer(ngram_world ngram_world.hpp "run_ngram_world(choices).fault")
reprise_add_world_fuzzer(follower follower_world.hpp "run_follower_world(choices)")
reprise_add_world_fuzzer(batch_follower batch_follower_world.hpp "run_batch_follower_world(choices)")
reprise_add_world_fuzzer(recovery recovery_world.hpp "run_recovery_world(choices).fault()")
# Compiled into the fuzzers, so that they see which code they have reached.
target_sources(fuzz-c_interface PRIVATE ${PROJECT_SOURCE_DIR}/include/reprise_c/reprise.cpp)
set(bench ${PROJECT_SOURCE_DIR}/bench)
target_sources(
  fuzz-input_files
  PRIVATE ${bench}/common/json.cpp ${bench}/common/session_lines.cpp ${bench}/replay/cost_curve.cpp
          ${bench}/replay/measured_cost.cpp ${bench}/replay/pass_times.cpp ${bench}/replay/trace.cpp
)
target_link_libraries(fuzz-input_files PRIVATE reprise-replay-lib)
