# SPDX-License-Identifier: Apache-2.0
# Runs the vcpkg port with stand-ins for the functions of vcpkg, because vcpkg downloads its tools.
#   cmake -DPORT=FOLDER -DFOLDER=WORK_FOLDER -P vcpkg_stand_in.cmake
set(CURRENT_PACKAGES_DIR ${FOLDER}/package)
set(PORT_NAME reprise)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${FOLDER}/build -DCMAKE_BUILD_TYPE=Release ${arg_OPTIONS}
    -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR})
endfunction()
function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${FOLDER}/build --target install)
endfunction()
# Moves the CMake package to share/PORT, like vcpkg. The depth changes, so the prefix in the targets file does too.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${CURRENT_PACKAGES_DIR}/share/${PORT_NAME})
  set(targets ${CURRENT_PACKAGES_DIR}/share/${PORT_NAME}/reprise-targets.cmake)
  file(READ ${targets} text)
  string(REGEX REPLACE "get_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\)[\n]" "" text "${text}")
  string(REPLACE "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)"
    "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_DIR}/../..\" ABSOLUTE)" text "${text}")
  file(WRITE ${targets} "${text}")
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(COPY_FILE ${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT_NAME}/copyright)
endfunction()

file(READ ${PORT}/vcpkg.json manifest)
string(JSON manifest_version GET "${manifest}" version)
file(STRINGS ${PORT}/../../../../include/reprise/core/token.hpp line REGEX "version_string = ")
if(NOT line MATCHES "\"${manifest_version}\"")
  message(FATAL_ERROR "vcpkg.json has version ${manifest_version}, but token.hpp has: ${line}")
endif()
include(${PORT}/portfile.cmake)
