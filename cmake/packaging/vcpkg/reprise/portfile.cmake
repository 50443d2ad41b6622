# SPDX-License-Identifier: Apache-2.0
# An overlay port that installs the tree it is part of: vcpkg install reprise --overlay-ports=cmake/packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # headers only

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DREPRISE_BUILD_TESTS=OFF
    -DREPRISE_BUILD_BENCH=OFF
    -DREPRISE_BUILD_EXAMPLES=OFF
    -DREPRISE_BUILD_C=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/reprise)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
