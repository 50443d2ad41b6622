# SPDX-License-Identifier: Apache-2.0
# find_package(reprise): the target reprise::reprise. Also reprise::c and reprise::c_shared, if they are installed:
# find_package(reprise COMPONENTS c) requires them.
include(${CMAKE_CURRENT_LIST_DIR}/reprise-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/reprise-c-targets.cmake OPTIONAL RESULT_VARIABLE reprise_c_FOUND)
foreach(component IN LISTS reprise_FIND_COMPONENTS)
  if(reprise_FIND_REQUIRED_${component} AND NOT reprise_${component}_FOUND)
    set(reprise_FOUND FALSE)
    set(reprise_NOT_FOUND_MESSAGE "reprise was installed without the component ${component}")
  endif()
endforeach()
