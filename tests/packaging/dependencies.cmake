# SPDX-License-Identifier: Apache-2.0
# Checks that cmake/dependencies.cmake configures where neither GoogleTest nor Google Benchmark is installed. Each of its
# archives is replaced by an empty project, so that nothing is downloaded: cmake -DDEPENDENCIES=... -DFOLDER=... -P
file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/archive/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(archive NONE)\n")
file(ARCHIVE_CREATE OUTPUT ${FOLDER}/archive.tar.gz PATHS ${FOLDER}/archive FORMAT gnutar COMPRESSION GZip)
file(SHA256 ${FOLDER}/archive.tar.gz hash)

file(READ ${DEPENDENCIES} text)
string(REGEX MATCHALL "URL_HASH SHA256=" archives "${text}")
list(LENGTH archives count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "${DEPENDENCIES} declares ${count} archives instead of 2: change this test")
endif()
string(REGEX REPLACE "URL https://[^\n]*" "URL file://${FOLDER}/archive.tar.gz" text "${text}")
string(REGEX REPLACE "SHA256=[0-9a-f]+" "SHA256=${hash}" text "${text}")
file(WRITE ${FOLDER}/project/dependencies.cmake "${text}")
file(
  WRITE ${FOLDER}/project/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.25)
project(without_packages LANGUAGES CXX)
include(dependencies.cmake)
foreach(name IN ITEMS googletest benchmark)
  FetchContent_GetProperties(\${name})
  if(NOT \${name}_POPULATED)
    message(FATAL_ERROR \"\${name} was not fetched\")
  endif()
endforeach()
"
)
execute_process(
  COMMAND
    ${CMAKE_COMMAND} -S ${FOLDER}/project -B ${FOLDER}/build -DCMAKE_DISABLE_FIND_PACKAGE_googletest=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON -DREPRISE_BUILD_TESTS=ON -DREPRISE_BUILD_BENCH=ON -DREPRISE_BUILD_MICRO=ON
  COMMAND_ERROR_IS_FATAL ANY
)
