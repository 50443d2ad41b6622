# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ file with the bytes of page.html, with page.css and page.js in it, of the folder PAGE:
#   cmake -DPAGE=FOLDER -DOUTPUT=FILE -P embed.cmake
file(READ "${PAGE}/page.html" bytes HEX)
foreach(part css js)
  string(HEX "{{${part}}}" mark)
  file(READ "${PAGE}/page.${part}" text HEX)
  string(REPLACE "${mark}" "${text}" bytes "${bytes}")
endforeach()
# Lines of 24 bytes, because compilers limit the length of a line and of a text.
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
string(REPEAT "......." 24 line)
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(
  WRITE "${OUTPUT}"
  "// Made by bench/replay/page/embed.cmake.\n#include \"page.hpp\"\n\nnamespace reprise::replay {\n"
  "std::string_view page_template() {\n  static constexpr char page[] = {\n${bytes}};\n"
  "  return {page, sizeof page};\n}\n\n}  // namespace reprise::replay\n"
)
