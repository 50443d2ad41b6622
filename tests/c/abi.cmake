# SPDX-License-Identifier: Apache-2.0
# Compares the binary interface of the shared library with the file abi.txt: the names that it exports, the layout of
# all structs, and all constants. A difference breaks programs that were compiled earlier.
#   PROGRAM   the program of abi.c
#   LIBRARY   the shared library
#   NM        lists symbols
#   EXPECTED  abi.txt
#   UPDATE    write abi.txt in place of comparing
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[^\n]* [A-Za-z] ([^\n]*)" "function \\1" functions "${symbols}")
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE layout COMMAND_ERROR_IS_FATAL ANY)
string(
  CONCAT now "# The binary interface of reprise.h on 64-bit systems: functions, constants, structs with their size, members\n"
         "# with offset and size. `cmake --build BUILD --target update-abi` writes this file.\n" "${functions}" "${layout}"
)
if(UPDATE)
  file(WRITE ${EXPECTED} "${now}")
  return()
endif()
file(READ ${EXPECTED} expected)
if(NOT now STREQUAL expected)
  file(WRITE ${FOLDER}/abi.txt "${now}")
  message(FATAL_ERROR "the binary interface has changed: compare ${EXPECTED} with ${FOLDER}/abi.txt")
endif()
