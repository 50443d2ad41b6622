// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <cctype>
#include <cstdlib>
#include <string>

#if defined(_WIN32)
#include <io.h>
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

namespace reprise::tools {

bool is_terminal(Stream stream) {
  const int file = stream == Stream::output ? 1 : 2;
#if defined(_WIN32)
  return _isatty(file) != 0;
#else
  return isatty(file) != 0;
#endif
}

std::size_t terminal_columns(Stream stream, std::size_t otherwise) {
#if !defined(_WIN32)
  winsize size{};
  if (ioctl(stream == Stream::output ? 1 : 2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
#else
  static_cast<void>(stream);
#endif
  return otherwise;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string letters;
    for (const char* c = value; *c != '\0'; ++c)
      if (*c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    return letters.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace reprise::tools
