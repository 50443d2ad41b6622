# SPDX-License-Identifier: Apache-2.0
# Installs the headers, the package for find_package(reprise), and the replay tool with its traces if it is built.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/reprise)

install(TARGETS reprise EXPORT reprise-targets FILE_SET HEADERS)
install(EXPORT reprise-targets NAMESPACE reprise:: DESTINATION ${package_dir})

file(WRITE ${PROJECT_BINARY_DIR}/reprise-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/reprise-targets.cmake)\n")
# ARCH_INDEPENDENT, because the package has headers only and serves every machine.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/reprise-config-version.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT
)
install(
  FILES
    ${PROJECT_BINARY_DIR}/reprise-config.cmake
    ${PROJECT_BINARY_DIR}/reprise-config-version.cmake
  DESTINATION ${package_dir}
)
