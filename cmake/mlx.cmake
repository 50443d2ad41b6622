# SPDX-License-Identifier: Apache-2.0
# Looks for MLX, for the example that uses it. Sets reprise_mlx_found and links the target reprise-mlx to it.
set(MLX_ROOT "" CACHE PATH "Where MLX is: a prefix it was installed to, or the folder mlx of its Python package")
add_library(reprise-mlx INTERFACE)
set(reprise_mlx_found FALSE)

set(only)
if(MLX_ROOT)
  set(only PATHS ${MLX_ROOT} NO_DEFAULT_PATH)
  unset(MLX_DIR CACHE) # a previous search may have found it elsewhere
endif()
find_package(MLX CONFIG QUIET ${only})
if(TARGET mlx)
  target_link_libraries(reprise-mlx INTERFACE mlx)
  set(reprise_mlx_found TRUE)
endif()

if(NOT reprise_mlx_found)
  set(why "set MLX_ROOT; examples/mlx/README.md says how to get it")
  if(MLX_ROOT)
    set(why "no MLXConfig.cmake below MLX_ROOT=${MLX_ROOT}")
  endif()
  message(STATUS "The example mlx is left out: MLX was not found (${why})")
elseif(NOT REPRISE_BUILD_BENCH)
  message(STATUS "The example mlx is left out: it uses parts of reprise-replay, and REPRISE_BUILD_BENCH is off")
  set(reprise_mlx_found FALSE)
endif()
