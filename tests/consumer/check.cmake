# SPDX-License-Identifier: Apache-2.0
# Configures, builds and runs the consumer project in FOLDER.
#   FROM=package       reprise was built in REPRISE_BUILD; it is installed into FOLDER first
#   FROM=subdirectory  or fetch: from the sources in REPRISE_SOURCE
# PROJECT, if given, is the subfolder of another project to use.
# COMPILER, if given, is the C++ compiler to use.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
# Without optimization, because the programs only show that they build and run. The last two options: as in a toolchain
# file for another machine, where no host header may be found.
set(options -DREPRISE_FROM=${FROM} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE= -DCMAKE_FIND_ROOT_PATH=${FOLDER}/machine
  -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY)
if(COMPILER)
  list(APPEND options -DCMAKE_CXX_COMPILER=${COMPILER})
endif()
if(FROM STREQUAL "package")
  run(${CMAKE_COMMAND} --install ${REPRISE_BUILD} --prefix ${FOLDER}/prefix)
  list(APPEND options -DCMAKE_PREFIX_PATH=${FOLDER}/prefix)
elseif(FROM STREQUAL "subdirectory")
  list(APPEND options -DREPRISE_FOLDER=${REPRISE_SOURCE})
else()
  list(APPEND options -DFETCHCONTENT_SOURCE_DIR_REPRISE=${REPRISE_SOURCE})
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${PROJECT} -B ${FOLDER}/build ${options})
run(${CMAKE_COMMAND} --build ${FOLDER}/build --config Release)
run(ctest --test-dir ${FOLDER}/build -C Release --output-on-failure --verbose)
