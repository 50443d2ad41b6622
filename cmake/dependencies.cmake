# SPDX-License-Identifier: Apache-2.0
# GoogleTest and Google Benchmark, from the system if installed, otherwise downloaded. Each is looked up only if a
# target needs it. The library itself needs neither.
include(FetchContent)

# Their files may declare the same names.
set(unity ${CMAKE_UNITY_BUILD})
set(CMAKE_UNITY_BUILD OFF)

# Makes the settings below effective in projects written for older versions of CMake.
set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)

# Warnings in third-party code must not become errors.
function(reprise_quiet)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      get_target_property(imported ${target} IMPORTED)
      if(NOT imported)
        target_compile_options(${target} PRIVATE -w)
      endif()
    endif()
  endforeach()
endfunction()

if(REPRISE_BUILD_TESTS)
  set(INSTALL_GTEST OFF)
  FetchContent_Declare(
    googletest
    SYSTEM # before URL_HASH: CMake 3.25 takes a word after the hash for a part of it
    URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
    FIND_PACKAGE_ARGS NAMES GTest
  )
  FetchContent_MakeAvailable(googletest)
  reprise_quiet(gtest gtest_main gmock gmock_main)
endif()

if(REPRISE_BUILD_BENCH AND REPRISE_BUILD_MICRO)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  FetchContent_Declare(
    benchmark
    SYSTEM # before URL_HASH: CMake 3.25 takes a word after the hash for a part of it
    URL https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz
    URL_HASH SHA256=6bc180a57d23d4d9515519f92b0c83d61b05b5bab188961f36ac7b06b0d9e9ce
    FIND_PACKAGE_ARGS NAMES benchmark
  )
  FetchContent_MakeAvailable(benchmark)
  reprise_quiet(benchmark benchmark_main)
endif()

set(CMAKE_UNITY_BUILD ${unity})
