# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ file with the bytes of the files page.html, page.css and page.js of the folder PAGE:
#   cmake -DPAGE=FOLDER -DOUTPUT=FILE -P embed.cmake
set(code "// Made by bench/replay/page/embed.cmake.\n#include \"page_files.hpp\"\n\nnamespace reprise::replay {\nnamespace {\n\n")
set(functions "")
foreach(part template:html style:css script:js)
  string(REGEX REPLACE ":.*" "" name ${part})
  string(REGEX REPLACE ".*:" "" ending ${part})
  file(READ "${PAGE}/page.${ending}" bytes HEX)
  # Lines of 24 bytes, because compilers limit the length of a line and of a text.
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(REPEAT "......." 24 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  string(APPEND code "constexpr char ${name}_bytes[] = {\n${bytes}};\n")
  string(APPEND functions "std::string_view page_${name}() { return {${name}_bytes, sizeof ${name}_bytes}; }\n")
endforeach()
file(WRITE "${OUTPUT}" "${code}\n}  // namespace\n\n${functions}\n}  // namespace reprise::replay\n")
