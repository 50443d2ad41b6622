# SPDX-License-Identifier: Apache-2.0
# The C interface as libraries: one C++ file, built without exceptions and RTTI. Users of the libraries need no C++
# header.
#   reprise::c         static. All symbols are hidden, so a plugin that links it does not export them.
#   reprise::c_shared  shared. Exports the functions of reprise.h and nothing else.
include(CheckLinkerFlag)
include(GNUInstallDirs)

function(reprise_add_c_library target kind export_name)
  add_library(${target} ${kind} ${PROJECT_SOURCE_DIR}/include/reprise_c/reprise.cpp)
  add_library(reprise::${export_name} ALIAS ${target})
  # The target does not link reprise::reprise, because a program in C may have no C++ compiler.
  target_include_directories(
    ${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  )
  reprise_add_moved_headers(${target} PUBLIC)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(
    ${target}
    PROPERTIES
      CXX_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON
      POSITION_INDEPENDENT_CODE ON
      EXPORT_NAME ${export_name}
      OUTPUT_NAME reprise-c
      VERSION ${PROJECT_VERSION}
      # Before version 1.0, a minor version may change the interface.
      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  )
  if(MSVC)
    target_compile_options(${target} PRIVATE /EHs-c- /GR- /D_HAS_EXCEPTIONS=0)
  else()
    target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti)
  endif()
endfunction()

reprise_add_c_library(reprise-c STATIC c)
# A program that is linked as C needs the C++ library for operator new and operator delete.
foreach(runtime IN ITEMS stdc++ c++)
  if(runtime IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    target_link_libraries(reprise-c INTERFACE $<$<LINK_LANGUAGE:C>:${runtime}>)
    break()
  endif()
endforeach()
if(WIN32)
  # The import library of the shared library has the other name.
  set_target_properties(reprise-c PROPERTIES OUTPUT_NAME reprise-c-static)
endif()

reprise_add_c_library(reprise-c-shared SHARED c_shared)
target_compile_definitions(reprise-c-shared PUBLIC REPRISE_C_SHARED PRIVATE REPRISE_C_BUILDING)
# The list of exported names also hides templates of the C++ library, which is compiled with visible symbols.
set(exported_names ${CMAKE_CURRENT_LIST_DIR}/c_interface.map)
check_linker_flag(CXX -Wl,--version-script=${exported_names} REPRISE_HAS_VERSION_SCRIPT)
if(REPRISE_HAS_VERSION_SCRIPT)
  target_link_options(reprise-c-shared PRIVATE -Wl,--version-script=${exported_names})
  set_target_properties(reprise-c-shared PROPERTIES LINK_DEPENDS ${exported_names})
endif()
