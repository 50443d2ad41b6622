# SPDX-License-Identifier: Apache-2.0
# Scripts of the project, and projects that use the library.

# The script of a release and the comparison of two commits, each in a small repository of its own; the mutants that
# tests/mutation/mutate.py finds; and how tests/coverage/coverage.py counts. They compile nothing.
find_package(Python3 COMPONENTS Interpreter)
foreach(script IN ITEMS packaging/release micro/compare_commits mutation/mutate coverage/coverage)
  string(REPLACE "/" "." name ${script})
  get_filename_component(folder ${script} DIRECTORY)
  get_filename_component(file ${script} NAME)
  if(Python3_Interpreter_FOUND AND UNIX AND NOT Python3_VERSION VERSION_LESS 3.10)
    set(tests ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -m unittest discover -s ${tests} -p test_${file}.py)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 TIMEOUT 300)
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: found no Python 3.10 or newer")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
  endif()
endforeach()

# The dependencies of tests and benchmarks, on a machine that has none of them.
add_test(
  NAME packaging.dependencies
  COMMAND
    ${CMAKE_COMMAND} -DDEPENDENCIES=${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake
    -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/dependencies -P ${CMAKE_CURRENT_SOURCE_DIR}/packaging/dependencies.cmake
)

# The core with some of its parts, installed, and the old names of headers.
add_test(
  NAME packaging.parts
  COMMAND
    ${CMAKE_COMMAND} -DREPRISE_SOURCE=${PROJECT_SOURCE_DIR} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/parts
    -DCOMPILER=${CMAKE_CXX_COMPILER} -P ${CMAKE_CURRENT_SOURCE_DIR}/packaging/parts.cmake
)

# Projects that use the library, installed and from its sources.
foreach(from IN ITEMS package subdirectory fetch)
  add_test(
    NAME consumer.${from}
    COMMAND
      ${CMAKE_COMMAND} -DFROM=${from} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/consumer-${from}
      -DREPRISE_SOURCE=${PROJECT_SOURCE_DIR} -DREPRISE_BUILD=${PROJECT_BINARY_DIR}
      -DCOMPILER=${CMAKE_CXX_COMPILER} -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/check.cmake
  )
endforeach()
if(REPRISE_BUILD_C)
  add_test(
    NAME consumer.c
    COMMAND
      ${CMAKE_COMMAND} -DFROM=package -DPROJECT=c -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/consumer-c
      -DREPRISE_BUILD=${PROJECT_BINARY_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/check.cmake
  )
endif()
