# SPDX-License-Identifier: Apache-2.0
# Installs the headers, the libraries of the C interface if they are built, and the packages for find_package(reprise)
# and pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS reprise EXPORT reprise-targets FILE_SET HEADERS)
foreach(part IN LISTS REPRISE_PARTS)
  install(TARGETS reprise-${part} EXPORT reprise-${part}-targets FILE_SET HEADERS)
endforeach()
install(FILES include/reprise/compiled.cpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reprise)
# With its implementation, so that a project can compile the C interface itself.
install(DIRECTORY include/reprise_c DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${reprise_moved_headers} DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise)

set(data_dir ${CMAKE_INSTALL_DATADIR})
set(independent ARCH_INDEPENDENT)  # headers serve every machine
if(REPRISE_BUILD_C)
  set(data_dir ${CMAKE_INSTALL_LIBDIR})
  unset(independent)
  install(TARGETS reprise-c reprise-c-shared EXPORT reprise-c-targets)
endif()
set(package_dir ${data_dir}/cmake/reprise)

install(EXPORT reprise-targets NAMESPACE reprise:: DESTINATION ${package_dir})
foreach(part IN LISTS REPRISE_PARTS)
  install(EXPORT reprise-${part}-targets NAMESPACE reprise:: DESTINATION ${package_dir})
endforeach()
if(REPRISE_BUILD_C)
  install(EXPORT reprise-c-targets NAMESPACE reprise:: DESTINATION ${package_dir})
endif()
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/reprise-config-version.cmake
  COMPATIBILITY SameMinorVersion
  ${independent}
)
install(
  FILES
    ${CMAKE_CURRENT_LIST_DIR}/compiled.cmake
    ${CMAKE_CURRENT_LIST_DIR}/reprise-config.cmake
    ${PROJECT_BINARY_DIR}/reprise-config-version.cmake
  DESTINATION ${package_dir}
)

# The files name the prefix by their own place, so that an installed tree can be moved.
function(reprise_install_pkgconfig name dir)
  file(RELATIVE_PATH up /${dir}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pkgconfig_prefix "\${pcfiledir}/${up}")
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${dir}/pkgconfig)
endfunction()
reprise_install_pkgconfig(reprise ${CMAKE_INSTALL_DATADIR})
if(REPRISE_BUILD_C)
  reprise_install_pkgconfig(reprise-c ${CMAKE_INSTALL_LIBDIR})
endif()

# The license, under the name that Debian and vcpkg expect.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
if(PROJECT_IS_TOP_LEVEL)
  include(cmake/packaging/debian.cmake)
endif()
