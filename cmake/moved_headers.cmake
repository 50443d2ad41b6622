# SPDX-License-Identifier: Apache-2.0
# The old names of headers: each fails with one sentence that names the new header. They are no files of include/.
include(GNUInstallDirs)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/moved_headers.txt)
set(reprise_moved_headers ${PROJECT_BINARY_DIR}/moved_headers)
file(STRINGS cmake/moved_headers.txt reprise_moves)
foreach(move IN LISTS reprise_moves)
  string(REGEX MATCH "^(.+) (.+)$" move "${move}")
  set(error "${CMAKE_MATCH_1} is now ${CMAKE_MATCH_2}")
  if(CMAKE_MATCH_2 STREQUAL "private")
    string(APPEND error ": docs/migrating.md says what to use")
  endif()
  file(CONFIGURE OUTPUT ${reprise_moved_headers}/${CMAKE_MATCH_1} CONTENT "#error \"${error}\"\n")
endforeach()

# Adds them to a target, after its own folder.
function(reprise_add_moved_headers target scope)
  target_include_directories(
    ${target}
    ${scope} $<BUILD_INTERFACE:${reprise_moved_headers}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_DATADIR}/reprise/moved_headers>
  )
endfunction()
