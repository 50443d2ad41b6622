# SPDX-License-Identifier: Apache-2.0
# find_package(reprise): the targets reprise::reprise and reprise::compiled, and a target for each other part that is installed. A part that is
# named as a component is required: find_package(reprise COMPONENTS methods).
#   methods  reprise::methods: drafters of published methods
#   corpus   reprise::corpus: text of any size in a file
#   testing  reprise::testing: checks for your strategy and your engine
#   c        reprise::c and reprise::c_shared: the C interface, if it was built
include(${CMAKE_CURRENT_LIST_DIR}/reprise-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/compiled.cmake)
foreach(part IN ITEMS methods corpus testing c)
  include(${CMAKE_CURRENT_LIST_DIR}/reprise-${part}-targets.cmake OPTIONAL RESULT_VARIABLE reprise_${part}_FOUND)
endforeach()
foreach(component IN LISTS reprise_FIND_COMPONENTS)
  if(reprise_FIND_REQUIRED_${component} AND NOT reprise_${component}_FOUND)
    set(reprise_FOUND FALSE)
    set(reprise_NOT_FOUND_MESSAGE "reprise was installed without the component ${component}")
  endif()
endforeach()
