# SPDX-License-Identifier: Apache-2.0
# The clang of Zig, with the libc++ and the C library that it brings for each target.
#   cmake --toolchain cmake/toolchains/zig.cmake -DREPRISE_ZIG=FOLDER -DREPRISE_ZIG_SYSTEM=Windows ...
# FOLDER holds the programs cc, c++, ar and ranlib; tests/targets/targets.sh writes it. REPRISE_ZIG_SYSTEM: Windows, Darwin
# or WASI.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REPRISE_ZIG REPRISE_ZIG_SYSTEM)
if(NOT REPRISE_ZIG OR NOT REPRISE_ZIG_SYSTEM)
  message(FATAL_ERROR "set REPRISE_ZIG to a folder with cc, c++, ar and ranlib, and REPRISE_ZIG_SYSTEM, such as Windows")
endif()
if(REPRISE_ZIG_SYSTEM STREQUAL "WASI")
  # CMake 3.25 does not know WASI; no shared libraries are made.
  set(CMAKE_SYSTEM_NAME Generic)
else()
  set(CMAKE_SYSTEM_NAME ${REPRISE_ZIG_SYSTEM})
endif()
set(CMAKE_C_COMPILER ${REPRISE_ZIG}/cc)
set(CMAKE_CXX_COMPILER ${REPRISE_ZIG}/c++)
set(CMAKE_AR ${REPRISE_ZIG}/ar)
set(CMAKE_RANLIB ${REPRISE_ZIG}/ranlib)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# CMake asks for this tool of macOS, which only changes installed libraries.
find_program(CMAKE_INSTALL_NAME_TOOL NAMES install_name_tool true)
