# SPDX-License-Identifier: Apache-2.0
# reprise::compiled: the default composition (reprise::Speculator), compiled once for all files that link the target. It
# is compiled in the project that links it, with the flags of that project, and only if something links it. The installed
# package includes this file too.
get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(CXX IN_LIST languages AND NOT TARGET reprise-compiled)
  get_target_property(include_dirs reprise::reprise INTERFACE_INCLUDE_DIRECTORIES)
  string(REGEX REPLACE "\\$<BUILD_INTERFACE:([^>]*)>" "\\1" include_dirs "${include_dirs}")
  find_file(compiled_cpp reprise/compiled.cpp PATHS ${include_dirs} NO_DEFAULT_PATH NO_CACHE
            NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  add_library(reprise-compiled STATIC EXCLUDE_FROM_ALL ${compiled_cpp})
  add_library(reprise::compiled ALIAS reprise-compiled)
  target_link_libraries(reprise-compiled PUBLIC reprise::reprise)
  target_compile_definitions(reprise-compiled INTERFACE REPRISE_COMPILED=1)
  set_target_properties(reprise-compiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()
