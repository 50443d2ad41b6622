# SPDX-License-Identifier: Apache-2.0
# Replaces the text of the license, which every Debian system has, by a copyright file in the form that Debian expects.
set(documents ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/doc)
file(REMOVE_RECURSE ${documents})
file(
  WRITE ${documents}/${CPACK_PACKAGE_NAME}/copyright
  "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: reprise

Files: *
Copyright: the authors of reprise
License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
"
)
