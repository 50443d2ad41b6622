# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler g++-TRIPLE, and qemu's user mode to run what it built.
#   cmake --toolchain cmake/toolchains/debian.cmake -DREPRISE_TRIPLE=s390x-linux-gnu -DREPRISE_QEMU=qemu-s390x ...
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REPRISE_TRIPLE REPRISE_QEMU)
if(NOT REPRISE_TRIPLE OR NOT REPRISE_QEMU)
  message(FATAL_ERROR "set REPRISE_TRIPLE and REPRISE_QEMU, such as s390x-linux-gnu and qemu-s390x")
endif()
string(REGEX MATCH "^[^-]*" CMAKE_SYSTEM_PROCESSOR ${REPRISE_TRIPLE})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${REPRISE_TRIPLE}-gcc)
set(CMAKE_CXX_COMPILER ${REPRISE_TRIPLE}-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR ${REPRISE_QEMU};-L;/usr/${REPRISE_TRIPLE})
# Libraries and headers of the build machine are for its own processor.
set(CMAKE_FIND_ROOT_PATH /usr/${REPRISE_TRIPLE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
