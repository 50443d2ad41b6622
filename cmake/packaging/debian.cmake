# SPDX-License-Identifier: Apache-2.0
# The Debian package libreprise-dev: `cpack -G DEB` in a build folder that was configured without the C interface.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME libreprise-dev)
set(CPACK_PACKAGE_CONTACT "the reprise maintainers <maintainers@reprise.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
if(NOT REPRISE_BUILD_C)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)  # headers serve every machine
endif()
include(CPack)
