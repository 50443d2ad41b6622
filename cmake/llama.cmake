# SPDX-License-Identifier: Apache-2.0
# Looks for llama.cpp, for the example and the tool that use it. Sets reprise_llama_found and links the target
# reprise-llama-cpp to it.
set(LLAMA_ROOT "" CACHE PATH "Where llama.cpp is: a prefix it was installed to, or site-packages of llama-cpp-python")
add_library(reprise-llama-cpp INTERFACE)
set(reprise_llama_found FALSE)

set(only)
if(LLAMA_ROOT)
  set(only PATHS ${LLAMA_ROOT} NO_DEFAULT_PATH)
  unset(llama_DIR CACHE) # a previous search may have found it elsewhere
endif()
find_package(llama CONFIG QUIET ${only})
if(TARGET llama)
  target_link_libraries(reprise-llama-cpp INTERFACE llama)
  set(reprise_llama_found TRUE)
elseif(LLAMA_ROOT)
  # For installations without CMake files, or inside the Python package. Not cached, so that another LLAMA_ROOT is
  # searched again.
  unset(LLAMA_HEADERS CACHE)
  find_path(LLAMA_HEADERS llama.h PATHS ${LLAMA_ROOT} PATH_SUFFIXES include llama_cpp/include NO_DEFAULT_PATH)
  set(libraries)
  foreach(library IN ITEMS llama ggml ggml-base)
    unset(LLAMA_LIBRARY CACHE)
    find_library(LLAMA_LIBRARY ${library} PATHS ${LLAMA_ROOT} PATH_SUFFIXES lib lib64 llama_cpp/lib NO_DEFAULT_PATH)
    list(APPEND libraries ${LLAMA_LIBRARY})
  endforeach()
  if(LLAMA_HEADERS AND NOT libraries MATCHES "NOTFOUND")
    target_include_directories(reprise-llama-cpp SYSTEM INTERFACE ${LLAMA_HEADERS})
    target_link_libraries(reprise-llama-cpp INTERFACE ${libraries})
    set(reprise_llama_found TRUE)
  endif()
endif()

if(NOT reprise_llama_found)
  set(why "set LLAMA_ROOT; examples/llama_cpp/README.md says how to get it")
  if(LLAMA_ROOT)
    set(why "no llama.h with libllama, libggml and libggml-base in LLAMA_ROOT=${LLAMA_ROOT}")
  endif()
  message(STATUS "reprise-llama is left out: llama.cpp was not found (${why})")
elseif(NOT REPRISE_BUILD_BENCH)
  message(STATUS "reprise-llama is left out: it uses parts of reprise-replay, and REPRISE_BUILD_BENCH is off")
endif()
