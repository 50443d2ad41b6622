# SPDX-License-Identifier: Apache-2.0
# The Debian package libreprise-dev: `cpack -G DEB` in a build folder that was configured without the C interface.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME libreprise-dev)
# Whoever builds the package is its maintainer; DEBFULLNAME and DEBEMAIL are the names that Debian's own tools read.
set(contact_name "$ENV{DEBFULLNAME}")
set(contact_address "$ENV{DEBEMAIL}")
if(NOT contact_name)
  set(contact_name "local build")
endif()
if(NOT contact_address)
  set(contact_address "root@localhost")
endif()
set(CPACK_PACKAGE_CONTACT "${contact_name} <${contact_address}>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION
    "reprise drafts tokens from text that the model has already seen, so that an\nLLM engine decodes faster with exactly the same output."
)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_copyright.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
if(NOT REPRISE_BUILD_C)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)  # headers serve every machine
endif()
include(CPack)
