# SPDX-License-Identifier: Apache-2.0
# Compiles SOURCE without writing anything (COMMAND: the compiler and its options) and holds what it says against the
# first line of SOURCE that reads "// message: REGEX". "// compiles" instead: it has to compile.
file(STRINGS ${SOURCE} lines REGEX "^// (message: |compiles)")
list(LENGTH lines count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${SOURCE} has to say once what is expected: '// message: REGEX' or '// compiles'")
endif()

set(ENV{LC_ALL} C) # plain quotation marks
execute_process(COMMAND ${COMMAND} ${SOURCE} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
string(APPEND output "${errors}")
if(lines STREQUAL "// compiles")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "has to compile, but the compiler says:\n${output}")
  endif()
  message(STATUS "compiles, as it has to")
  return()
endif()

string(REGEX REPLACE "^// message: " "" expected "${lines}")
if(result EQUAL 0)
  message(FATAL_ERROR "must not compile, but does")
endif()
if(NOT output MATCHES "${expected}")
  message(FATAL_ERROR "does not compile, but no line says '${expected}':\n${output}")
endif()
message(STATUS "refused with: ${CMAKE_MATCH_0}")
