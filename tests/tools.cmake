# SPDX-License-Identifier: Apache-2.0
# The tests of the tools in bench/, and of the llama.cpp adapter.

# The stand-in for llama.cpp, and the example built with it.
set(stand_in ${CMAKE_CURRENT_SOURCE_DIR}/support/llama_stand_in)
add_library(reprise-llama-stand-in STATIC ${stand_in}/llama_stand_in.cpp ${stand_in}/model.cpp ${stand_in}/samplers.cpp)
target_compile_features(reprise-llama-stand-in PUBLIC cxx_std_20)
target_include_directories(reprise-llama-stand-in PUBLIC ${stand_in})
add_executable(reprise-llama-example-stand-in ${PROJECT_SOURCE_DIR}/examples/llama_cpp/main.cpp)
target_link_libraries(reprise-llama-example-stand-in PRIVATE reprise::reprise reprise-llama-stand-in)
reprise_add_tests(
  tools
  reprise-replay-tests
  common/any_strategy.test.cpp
  common/files.test.cpp
  common/interrupt.test.cpp
  common/json.test.cpp
  common/options.test.cpp
  common/text.test.cpp
  peers/adaptive_lookup.test.cpp
  peers/published_token_recycling_drafter.test.cpp
  peers/racer_drafter.test.cpp
  replay/advice.test.cpp
  replay/bundled_counts.test.cpp
  replay/ceiling.test.cpp
  replay/clock_spec.test.cpp
  replay/corpora.test.cpp
  replay/cost_curve.test.cpp
  replay/curve_log.test.cpp
  replay/heads.test.cpp
  replay/input_files.test.cpp
  replay/loss_window.test.cpp
  replay/pass_times.test.cpp
  replay/page.test.cpp
  replay/page_figures.test.cpp
  replay/past.test.cpp
  replay/rebase.test.cpp
  replay/reliability.test.cpp
  replay/replay.test.cpp
  replay/replay_control.test.cpp
  replay/seeds.test.cpp
  replay/seeds_tool.test.cpp
  replay/simulated_clock.test.cpp
  replay/strategies.test.cpp
  replay/tool.test.cpp
  replay/trace.test.cpp
  replay/vocabulary.test.cpp
  server/server.test.cpp
  groups/groups.test.cpp
  index_tool/place_merge.test.cpp
  index_tool/range_sort.test.cpp
  index_tool/tool.test.cpp
  SHARDS 2
)
target_link_libraries(reprise-replay-tests PRIVATE reprise-replay-lib reprise-groups-lib reprise-index-lib)

# The decisions of the library on the bundled traces, also through the C interface.
if(REPRISE_BUILD_C)
  reprise_add_tests(tools reprise-digest-tests digests/digests.test.cpp digests/one_sequence.test.cpp)
  target_link_libraries(reprise-digest-tests PRIVATE reprise-replay-lib reprise::c)
endif()

# reprise-llama built with the stand-in, so that neither llama.cpp nor a model is needed.
include(${PROJECT_SOURCE_DIR}/bench/llama/library.cmake)
reprise_add_llama_library(reprise-llama-stand-in-lib reprise-llama-stand-in)
reprise_add_tests(
  tools
  reprise-llama-tests
  llama/batch_decode.test.cpp
  llama/flips.test.cpp
  llama/llama_verifier.test.cpp
  llama/loops.test.cpp
  llama/options.test.cpp
  llama/profile.test.cpp
  llama/record.test.cpp
  llama/recorded_picks.test.cpp
  llama/tool.test.cpp
  llama/trace_writer.test.cpp
  llama/verdict.test.cpp
  SHARDS 2
)
target_link_libraries(reprise-llama-tests PRIVATE reprise-llama-stand-in-lib)
add_executable(reprise-llama-stand-in-tool ${PROJECT_SOURCE_DIR}/bench/llama/main.cpp)
target_link_libraries(reprise-llama-stand-in-tool PRIVATE reprise-llama-stand-in-lib)

find_package(Python3 COMPONENTS Interpreter)

# Tables of commands with their exit status and output.
if(Python3_Interpreter_FOUND)
  set(commands ${CMAKE_CURRENT_SOURCE_DIR}/commands)
  set(bench ${PROJECT_SOURCE_DIR}/bench)
  function(reprise_add_commands table)
    add_test(NAME commands.${table} COMMAND ${Python3_EXECUTABLE} ${commands}/run.py ${commands}/${table}.txt ${ARGN})
  endfunction()
  reprise_add_commands(replay reprise-replay=$<TARGET_FILE:reprise-replay>)
  reprise_add_commands(index reprise-index=$<TARGET_FILE:reprise-index>)
  reprise_add_commands(server reprise-server=$<TARGET_FILE:reprise-server>)
  reprise_add_commands(groups reprise-groups=$<TARGET_FILE:reprise-groups>)
  reprise_add_commands(
    llama reprise-llama=$<TARGET_FILE:reprise-llama-stand-in-tool>
    llama_cpp=$<TARGET_FILE:reprise-llama-example-stand-in>
  )
  reprise_add_commands(
    benchmarks
    predicted=$<TARGET_FILE:reprise-bench-predicted>
    "setups=${Python3_EXECUTABLE} ${bench}/llama/setups.py"
    "setups_table=${Python3_EXECUTABLE} ${bench}/llama/setups_table.py"
    "compile=${Python3_EXECUTABLE} ${bench}/compile/compile.py"
    "fit_constants=${Python3_EXECUTABLE} ${bench}/replay/fit_constants.py"
  )
  add_test(NAME commands.performance_tables COMMAND ${Python3_EXECUTABLE} ${commands}/performance_tables.py
                                              $<TARGET_FILE:reprise-replay>)
endif()

# The script that builds llama-server, and the benchmark over HTTP, with a stand-in. tests/llama_server/with_real_server.sh
# has the real server.
if(Python3_Interpreter_FOUND AND NOT Python3_VERSION VERSION_LESS 3.9)
  add_test(
    NAME llama_server.scripts COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${CMAKE_CURRENT_SOURCE_DIR}/llama_server
  )
  set_tests_properties(llama_server.scripts PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 TIMEOUT 300)
endif()

# Scripts that write traces, and a replay of their traces.
if(Python3_Interpreter_FOUND AND NOT Python3_VERSION VERSION_LESS 3.10)
  add_test(
    NAME replay.scripts COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${CMAKE_CURRENT_SOURCE_DIR}/replay
  )
  set_tests_properties(
    replay.scripts PROPERTIES ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;REPRISE_REPLAY=$<TARGET_FILE:reprise-replay>"
  )
endif()

# The measurement of serving engines, with a stand-in of one.
if(Python3_Interpreter_FOUND AND NOT Python3_VERSION VERSION_LESS 3.10)
  add_test(NAME gpu.scripts COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${CMAKE_CURRENT_SOURCE_DIR}/gpu)
  set_tests_properties(gpu.scripts PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()

# The distillation of a draft model: its parts without torch.
if(Python3_Interpreter_FOUND AND NOT Python3_VERSION VERSION_LESS 3.10)
  add_test(
    NAME draft_model.scripts COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${CMAKE_CURRENT_SOURCE_DIR}/draft_model
  )
  set_tests_properties(draft_model.scripts PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()

# The script for GPUs, on the CPU. -DPython3_EXECUTABLE= names a Python that has torch.
set(has_torch 1)
if(Python3_Interpreter_FOUND)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    RESULT_VARIABLE has_torch
  )
endif()
if(has_torch EQUAL 0)
  set(measure_gpu ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/profiles/measure_gpu.py)
  set(curve ${CMAKE_CURRENT_BINARY_DIR}/measured_tiny.json)
  add_test(NAME profiles.measure_gpu_check COMMAND ${measure_gpu} --device cpu --shape tiny --check)
  # Fewer layers than the shape has, so that times are scaled.
  add_test(
    NAME profiles.measure_gpu
    COMMAND ${measure_gpu} --device cpu --shape tiny --layers 3 --drafted 0-2 --samples 3 --output ${curve}
  )
  add_test(
    NAME profiles.measure_gpu_is_read
    COMMAND reprise-replay --cost ${curve} --strategy ngram ${PROJECT_SOURCE_DIR}/bench/traces/retrieval.jsonl
  )
  set_tests_properties(profiles.measure_gpu PROPERTIES FIXTURES_SETUP measured_tiny)
  set_tests_properties(profiles.measure_gpu_is_read PROPERTIES FIXTURES_REQUIRED measured_tiny)
  add_test(NAME profiles.measure_gpu_bad_input COMMAND ${measure_gpu} --drafted 1-8)
  set_tests_properties(profiles.measure_gpu_bad_input PROPERTIES PASS_REGULAR_EXPRESSION "the list must include 0")
else()
  add_test(NAME profiles.measure_gpu COMMAND ${CMAKE_COMMAND} -E echo "skipped: found no Python with torch")
  set_tests_properties(profiles.measure_gpu PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
endif()

# The server of examples/fleet, and the steps of its job without Ray. tests/fleet/with_ray.sh adds Ray.
if(TARGET reprise-example-fleet-server)
  add_test(
    NAME fleet.server
    COMMAND
      ${CMAKE_COMMAND} -DSERVER=$<TARGET_FILE:reprise-example-fleet-server> -DINDEX=$<TARGET_FILE:reprise-index>
      -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/fleet-server -P ${CMAKE_CURRENT_SOURCE_DIR}/fleet/check_server.cmake
  )
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND AND NOT Python3_VERSION VERSION_LESS 3.10)
    add_test(
      NAME fleet.steps
      COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${CMAKE_CURRENT_SOURCE_DIR}/fleet -p test_fleet.py
    )
    set_tests_properties(
      fleet.steps
      PROPERTIES
        ENVIRONMENT
        "FLEET_INDEX=$<TARGET_FILE:reprise-index>;FLEET_SERVER=$<TARGET_FILE:reprise-example-fleet-server>;PYTHONDONTWRITEBYTECODE=1"
        TIMEOUT 300
    )
  else()
    add_test(NAME fleet.steps COMMAND ${CMAKE_COMMAND} -E echo "skipped: found no Python 3.10 or newer")
    set_tests_properties(fleet.steps PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
  endif()
endif()

# The llama.cpp adapter with the real library. The environment names a folder of models at run time; see
# llama/with_real_engine.sh. Without it these tests are skipped.
if(TARGET reprise-llama)
  reprise_add_tests(engine reprise-llama-engine-tests llama/real_engine.test.cpp llama/real_batch.test.cpp)
  target_link_libraries(reprise-llama-engine-tests PRIVATE reprise-llama-lib)
endif()

# The commands that the Markdown files show.
if(UNIX)
  add_test(
    NAME house.commands
    COMMAND
      bash ${CMAKE_CURRENT_SOURCE_DIR}/house/commands.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/bench
      ${CMAKE_CURRENT_BINARY_DIR}/commands
  )
endif()
