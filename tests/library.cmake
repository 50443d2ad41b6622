# SPDX-License-Identifier: Apache-2.0
# The tests of the library, its C interface and its Python package.

# A program for each layer: reprise-core-tests holds core/*.test.cpp.
function(reprise_add_layer_tests layer)
  list(TRANSFORM ARGN PREPEND ${layer}/)
  list(TRANSFORM ARGN APPEND .test.cpp)
  reprise_add_tests(library reprise-${layer}-tests ${ARGN})
endfunction()

reprise_add_layer_tests(
  core
  buffer
  capabilities
  concepts
  control
  datastore
  draft
  draft_push
  draft_stops
  duration
  fixed_log
  fixed_point
  limits
  new_array
  outcome
  probability
  result
  version
)
reprise_add_layer_tests(
  engine
  attention_mask
  rejection
  sampler_history
  top_k
  tree
)
reprise_add_layer_tests(
  stats
  statistics
  statistics_text
)
reprise_add_layer_tests(
  index
  bounded_work
  growth
  lookup_index
  next_token_counts
  next_token_rankings
  next_tokens
  ngram_table
  rolling_hash
  suffix_array
  token_counts
  token_hash
)
reprise_add_layer_tests(
  evidence
  claim_calibrator
  hit_rate
  isotonic
  match_weight
  token_calibrator
)
reprise_add_layer_tests(
  history
  checksum
  cost_snapshot
  history_snapshot
  history_store
  history_store_interleaving
  history_store_poisoning
  memory
  snapshot
  snapshot_calibration
  snapshot_file
  snapshot_runs
  table_snapshot
)
reprise_add_layer_tests(
  draft
  best_first
  external_drafter
  first_match
  frontier
  headed_drafter
  live_matches
  merged_draft
  model_drafter
  ngram_digests
  ngram_drafter
  ngram_next_tokens
  ngram_rebase
  ngram_shown_rows
  ngram_stores
  no_drafter
  origin_bits
  predicted_output
  presets
  prompt_lookup_drafter
  shown_rows
  store_schedule
  union_drafter
)
reprise_add_layer_tests(
  control
  cost_control
  cost_curve
  cost_prior
  draft_length
  head_control
  learned_curve
  loss_budget
  path_products
)
reprise_add_layer_tests(
  loop
  accepted_path
  attention
  draft_bounds
  follower
  generate
  grammar
  open_round
  open_round_limits
  pass_intervals
  pass_limits
  round
  select_nodes
  sequence
  session
  session_checkpoints
  session_rebase
  session_stops
  session_trees
  settings
)
reprise_add_layer_tests(
  batch
  batch_cost
  batch_heads
  batch_follower_after
  batch_follower_busy
  batch_follower_groups
  batch_follower_turns
  batch_follower_threads
  batched_loop
  packing
  planner
  worth
)
# They call no function of the library, so sanitizers have nothing to find.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  reprise_add_layer_tests(
    house
    layers
    markdown
    pages
    public_face
    reference
  )
endif()
# It reads the English of the whole tree, so only the step lint of .ci/full builds and runs it.
add_executable(reprise-language-tests EXCLUDE_FROM_ALL house/language.test.cpp)
reprise_set_test_options(reprise-language-tests)
target_precompile_headers(reprise-language-tests REUSE_FROM reprise-test-header)

# The parts beside the core. The tests of the core use the testing kit, and nothing else of them.
if(TARGET reprise-methods)
  reprise_add_layer_tests(
    methods
    best_of
    grouped_release
    jump_forward_drafter
    lookahead_drafter
    member_outcome
    ngram_pool
    placeholders
    repetition_gate
    rest_drafter
    table_presets
    token_recycling_drafter
    token_table
    token_table_drafter
  )
endif()
if(TARGET reprise-corpus)
  reprise_add_layer_tests(
    corpus
    corpus_damage
    corpus_drafts
    corpus_store
    corpus_writer
    mapped_corpus
    suffix_sort
  )
endif()
if(TARGET reprise-testing)
  reprise_add_layer_tests(
    testing
    check_attention
    check_batch
    check_refinements
    check_strategy
    check_verifier
    lossless
    measure_curve
    random
    report
    row_effect
    scripted_verifier
  )
endif()

# The composition of the layers.
reprise_add_tests(
  library
  reprise-speculator-tests
  speculator.test.cpp
  headed_speculator.test.cpp
  cuda/walk.test.cpp
)
# The same tests, of the default composition that is compiled once. The code is the same, so sanitizers need it only once.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  reprise_add_tests(library reprise-compiled-tests speculator.test.cpp)
  target_link_libraries(reprise-compiled-tests PRIVATE reprise::compiled)
endif()

# Longer tests with many random cases. An environment variable sets their number (see each file).
reprise_add_tests(
  library
  reprise-property-tests
  property/exact_sampling.test.cpp
  property/batch_follower.test.cpp
  property/batch_heads.test.cpp
  property/draft_head.test.cpp
  property/follower.test.cpp
  property/index_equivalence.test.cpp
  property/learned_costs.test.cpp
  property/loss_budget.test.cpp
  property/lossless.test.cpp
  property/ngram_world.test.cpp
  property/sampled_rounds.test.cpp
  property/sampling_statistics.test.cpp
  property/small_trees.test.cpp
  property/small_world.test.cpp
  property/salt_isolation.test.cpp
  SHARDS 8
)

# The C interface: its functions, and its binary interface.
if(REPRISE_BUILD_C)
  reprise_add_tests(
    library
    reprise-c-tests
    c/c_calls.test.cpp
    c/c_interface.test.cpp
    c/heads.test.cpp
    c/steps.test.cpp
    llama_server/speculative.test.cpp
    ${PROJECT_SOURCE_DIR}/examples/llama_server/private_files.cpp
  )
  target_link_libraries(reprise-c-tests PRIVATE reprise::c)
  target_include_directories(reprise-c-tests PRIVATE ${PROJECT_SOURCE_DIR}/examples/llama_server)
  set(part_allocation_tests c/c_interface.allocation.test.cpp)

  # The names are listed as on ELF systems.
  if(REPRISE_HAS_VERSION_SCRIPT AND CMAKE_NM AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    add_executable(reprise-c-abi c/abi.c)
    set_target_properties(reprise-c-abi PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
    target_link_libraries(reprise-c-abi PRIVATE reprise::c)
    set(abi
        ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:reprise-c-abi> -DLIBRARY=$<TARGET_FILE:reprise-c-shared>
        -DNM=${CMAKE_NM} -DEXPECTED=${CMAKE_CURRENT_SOURCE_DIR}/c/abi.txt -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}
    )
    add_test(NAME c.abi COMMAND ${abi} -P ${CMAKE_CURRENT_SOURCE_DIR}/c/abi.cmake)
    add_custom_target(update-abi COMMAND ${abi} -DUPDATE=1 -P ${CMAKE_CURRENT_SOURCE_DIR}/c/abi.cmake)
    add_dependencies(update-abi reprise-c-abi reprise-c-shared)
  endif()
endif()

if(TARGET reprise-methods)
  list(
    APPEND
    part_allocation_tests
    methods/drafter_memory.allocation.test.cpp
    methods/ranked_drafters.allocation.test.cpp
    methods/token_table_drafter.allocation.test.cpp
  )
endif()
if(TARGET reprise-corpus)
  list(APPEND part_allocation_tests corpus/corpus.allocation.test.cpp)
endif()

# A separate program, because it replaces the global operator new. Where the compiler sees the replacement, it warns of
# GoogleTest's own use of new and delete.
set_source_files_properties(support/allocation_counter.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
reprise_add_tests(
  library
  reprise-allocation-tests
  batch/batch.allocation.test.cpp
  ${part_allocation_tests}
  core/buffer.allocation.test.cpp
  draft/draft_sources.allocation.test.cpp
  draft/ngram_drafter.allocation.test.cpp
  draft/shown_rows.allocation.test.cpp
  evidence/shared_calibration.allocation.test.cpp
  index/growth.allocation.test.cpp
  index/next_tokens.allocation.test.cpp
  index/token_counts.allocation.test.cpp
  history/snapshot.allocation.test.cpp
  history/memory.allocation.test.cpp
  property/allocation.test.cpp
  engine/sampler_history.allocation.test.cpp
  loop/session.allocation.test.cpp
  support/allocation_counter.cpp
)
if(REPRISE_BUILD_C)
  target_link_libraries(reprise-allocation-tests PRIVATE reprise::c)
endif()

# The Python package with the shared library of this build. -DPython3_EXECUTABLE= names a Python that has numpy. The
# engines are stand-ins, so nothing else is needed.
if(REPRISE_BUILD_C)
  find_package(Python3 COMPONENTS Interpreter)
  set(no_python "found no Python 3.10 or newer with numpy")
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(no_python "Python cannot load a library with sanitizers")
  elseif(Python3_Interpreter_FOUND AND NOT Python3_VERSION VERSION_LESS 3.10)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('numpy') is None)"
      RESULT_VARIABLE has_numpy
    )
    if(has_numpy EQUAL 0)
      set(no_python "")
    endif()
  endif()
  if(no_python)
    add_test(NAME python.package COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${no_python}")
    set_tests_properties(python.package PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
  else()
    set(package ${PROJECT_SOURCE_DIR}/examples/python)
    add_test(NAME python.package COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${package}/tests)
    set_tests_properties(
      python.package
      PROPERTIES
        ENVIRONMENT
        "PYTHONPATH=${package};PYTHONDONTWRITEBYTECODE=1;REPRISE_LIBRARY=$<TARGET_FILE:reprise::c_shared>"
        TIMEOUT 600
    )
  endif()
endif()

# Files of every format, written and read. tests/targets/targets.sh exchanges them between machines.
if(TARGET reprise-corpus)
  add_executable(reprise-exchange targets/exchange.cpp)
  target_link_libraries(reprise-exchange PRIVATE reprise::reprise)
  set(exchange ${CMAKE_CURRENT_BINARY_DIR}/exchange)
  file(MAKE_DIRECTORY ${exchange})
  add_test(NAME exchange.write COMMAND reprise-exchange write ${exchange})
  add_test(NAME exchange.read COMMAND reprise-exchange read ${exchange})
  add_test(NAME exchange.same_bytes COMMAND ${CMAKE_COMMAND} -E compare_files ${exchange}/all.snapshot
                                            ${exchange}/again.snapshot)
  set_tests_properties(exchange.write PROPERTIES FIXTURES_SETUP exchanged_files)
  # The number depends on the matches in the corpus: the same on every machine.
  set_tests_properties(
    exchange.read
    PROPERTIES FIXTURES_REQUIRED exchanged_files FIXTURES_SETUP exchanged_again PASS_REGULAR_EXPRESSION "^c83421a694626453"
  )
  set_tests_properties(exchange.same_bytes PROPERTIES FIXTURES_REQUIRED "exchanged_files;exchanged_again")
endif()

# The digests of drafts again, compiled otherwise: drafts must not depend on optimisation or on floating-point options.
function(reprise_add_digest name)
  add_executable(reprise-digest-${name} draft/ngram_digests.test.cpp)
  reprise_set_test_options(reprise-digest-${name})
  target_compile_options(reprise-digest-${name} PRIVATE ${ARGN})
  add_test(NAME determinism.${name} COMMAND reprise-digest-${name} --gtest_brief=1)
endfunction()
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT MSVC)
  reprise_add_digest(unoptimised -O0)
  reprise_add_digest(fast_math -O3 -ffast-math -march=native)
elseif(MSVC)
  reprise_add_digest(fast_math /O2 /fp:fast)
endif()

# The adapter for MLX, if MLX is found. The tests make their models.
if(TARGET reprise-example-mlx)
  reprise_add_tests(
    mlx
    reprise-mlx-tests
    mlx/llama_model.test.cpp
    mlx/mlx_cache.test.cpp
    mlx/mlx_server.test.cpp
    mlx/mlx_verifier.test.cpp
    mlx/model_folder.test.cpp
  )
  target_link_libraries(reprise-mlx-tests PRIVATE reprise-mlx)
  add_executable(reprise-mlx-tiny-folder mlx/write_tiny_folder.cpp)
  target_link_libraries(reprise-mlx-tiny-folder PRIVATE reprise-mlx)
  add_test(
    NAME mlx.example
    COMMAND
      ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:reprise-example-mlx> -DWRITE=$<TARGET_FILE:reprise-mlx-tiny-folder>
      -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/mlx-example -P ${CMAKE_CURRENT_SOURCE_DIR}/mlx/check_example.cmake
  )
endif()

# A program built without exceptions and RTTI.
add_executable(reprise-no-exceptions house/no_exceptions.cpp)
target_link_libraries(reprise-no-exceptions PRIVATE reprise::reprise)
if(MSVC)
  target_compile_options(reprise-no-exceptions PRIVATE /EHs-c- /GR- /D_HAS_EXCEPTIONS=0)
else()
  target_compile_options(reprise-no-exceptions PRIVATE -fno-exceptions -fno-rtti)
endif()
add_test(NAME house.no_exceptions COMMAND reprise-no-exceptions)

# The consumer's two translation units, under the warnings and sanitizers of this build.
add_executable(reprise-two-units consumer/main.cpp consumer/engine.cpp)
set_target_properties(reprise-two-units PROPERTIES UNITY_BUILD OFF)
target_link_libraries(reprise-two-units PRIVATE reprise::reprise)
add_test(NAME house.two_units COMMAND reprise-two-units)

# Code that must not compile. What a compiler refuses does not depend on sanitizers.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize|--coverage")
  add_subdirectory(compile_fail)
endif()
