// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <cctype>
#include <csignal>
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

extern "C" void end_line(int signal) {
#if defined(_WIN32)
  static_cast<void>(_write(2, "\n", 1));
#else
  static_cast<void>(!write(2, "\n", 1));
#endif
  std::signal(signal, SIG_DFL);
  static_cast<void>(std::raise(signal));
}
void end_line_at_interrupt() { std::signal(SIGINT, &end_line); }

std::uint64_t machine_memory() {
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && bytes > 0) return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes);
#endif
  return 0;
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
