# SPDX-License-Identifier: Apache-2.0
# CPMAddPackage() with the arguments that docs/install.md shows, by FetchContent. CPM.cmake itself is one file that a
# project downloads.
include(FetchContent)

function(CPMAddPackage)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;URL;URL_HASH" "")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_URL)
    message(FATAL_ERROR "this stand-in for CPM.cmake takes NAME, URL and URL_HASH, not: ${ARGN}")
  endif()
  FetchContent_Declare(${arg_NAME} URL ${arg_URL} URL_HASH ${arg_URL_HASH})
  FetchContent_MakeAvailable(${arg_NAME})
endfunction()
