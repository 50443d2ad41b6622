# SPDX-License-Identifier: Apache-2.0
# Installs the core with one part into FOLDER, and asks for parts as a user does. Compiles nothing.
function(configure parts)
  execute_process(
    COMMAND
      ${CMAKE_COMMAND} -S ${REPRISE_SOURCE} -B ${FOLDER}/build -DCMAKE_CXX_COMPILER=${COMPILER} -DREPRISE_PARTS=${parts}
      -DREPRISE_BUILD_TESTS=OFF -DREPRISE_BUILD_BENCH=OFF -DREPRISE_BUILD_EXAMPLES=OFF ${ARGN}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE error
  )
  set(status ${status} PARENT_SCOPE)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  set(error "${error}" PARENT_SCOPE)
endfunction()
function(expect_refusal why)
  if(status EQUAL 0 OR NOT error MATCHES "${why}")
    message(FATAL_ERROR "expected an error with: ${why}\nstatus ${status}: ${error}")
  endif()
endfunction()
# Looks for the package with a component, in a project of its own.
function(find component)
  file(WRITE ${FOLDER}/user/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES NONE)
find_package(reprise CONFIG REQUIRED COMPONENTS ${component})
if(NOT TARGET reprise::${component})
  message(FATAL_ERROR \"there is no target reprise::${component}\")
endif()
")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${FOLDER}/user -B ${FOLDER}/user/build -DCMAKE_PREFIX_PATH=${FOLDER}/prefix
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE error
  )
  set(status ${status} PARENT_SCOPE)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")
  set(error "${error}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
configure(method)
expect_refusal("REPRISE_PARTS has 'method', which is no part: list some of methods;corpus;testing")
configure(corpus -DREPRISE_BUILD_EXAMPLES=ON)
expect_refusal("REPRISE_PARTS lacks methods: set REPRISE_BUILD_EXAMPLES")
configure(corpus)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${error}")
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${FOLDER}/build --prefix ${FOLDER}/prefix COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
)
file(GLOB folders RELATIVE ${FOLDER}/prefix/include ${FOLDER}/prefix/include/*)
if(NOT folders STREQUAL "reprise;reprise_c;reprise_corpus")
  message(FATAL_ERROR "installed below include/: ${folders}")
endif()
find(corpus)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${error}")
endif()
find(methods)
expect_refusal("reprise was installed without the component methods")

foreach(
  old
  IN
  ITEMS "c/reprise.h is now reprise_c/reprise.h" "core/buffer.hpp is now private: docs/migrating.md says what to use"
        "core/version.hpp is now reprise/core/token.hpp"
)
  string(REGEX MATCH "^[^ ]+" name "${old}")
  file(READ ${FOLDER}/prefix/share/reprise/moved_headers/reprise/${name} text)
  if(NOT text STREQUAL "#error \"reprise/${old}\"\n")
    message(FATAL_ERROR "${name}: ${text}")
  endif()
endforeach()
