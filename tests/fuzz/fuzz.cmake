# SPDX-License-Identifier: Apache-2.0
# Needs clang. Each fuzzer runs the body of a test.
add_custom_target(fuzzers)
foreach(fuzzer IN ITEMS lossless input_files ngram_world snapshot corpus follower batch_follower recovery c_interface)
  add_executable(fuzz-${fuzzer} fuzz/${fuzzer}.fuzz.cpp)
  target_link_libraries(fuzz-${fuzzer} PRIVATE reprise::reprise)
  target_include_directories(fuzz-${fuzzer} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(fuzz-${fuzzer} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz-${fuzzer} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers fuzz-${fuzzer})
endforeach()
# Compiled into the fuzzers, so that they see which code they have reached.
target_sources(fuzz-c_interface PRIVATE ${PROJECT_SOURCE_DIR}/include/reprise_c/reprise.cpp)
set(bench ${PROJECT_SOURCE_DIR}/bench)
target_sources(
  fuzz-input_files
  PRIVATE ${bench}/common/json.cpp ${bench}/common/session_lines.cpp ${bench}/replay/cost_curve.cpp
          ${bench}/replay/measured_cost.cpp ${bench}/replay/pass_times.cpp ${bench}/replay/trace.cpp
)
target_link_libraries(fuzz-input_files PRIVATE reprise-replay-lib)
