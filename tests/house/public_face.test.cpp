// SPDX-License-Identifier: Apache-2.0
// The public interface. reprise.hpp defines it, together with the testing kit, the extras and the system calls, which
// are included by name. No public signature names a detail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "house/headers.hpp"

namespace house {
namespace {

/// Returns C++ text without comments, literals and preprocessor lines.
std::string bare(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (text.substr(i, 2) == "//" || (text[i] == '#' && line_start)) {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
      out += '\n';
    } else if (text[i] == '"' ||
               (text[i] == '\'' && (out.empty() || std::isalnum(static_cast<unsigned char>(out.back())) == 0))) {
      const char quote = text[i];
      for (++i; i < text.size() && text[i] != quote; ++i) i += text[i] == '\\' ? 1 : 0;
      out += "0";
    } else {
      out += text[i];
    }
  }
  return out;
}

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) &&
         (text.size() == word.size() ||
          (std::isalnum(static_cast<unsigned char>(text[word.size()])) == 0 && text[word.size()] != '_'));
}
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}
std::string_view without_noexcept(std::string_view text) {
  text = trimmed(text);
  if (begins_with_word(text, "noexcept")) text.remove_prefix(std::string_view("noexcept").size());
  return trimmed(text);
}
/// Returns a declaration without a leading "template <...>" and without attributes.
std::string_view without_head(std::string_view text) {
  for (text = trimmed(text); begins_with_word(text, "template"); text = trimmed(text)) {
    std::size_t i = text.find('<');
    for (int depth = 0; i < text.size(); ++i) {
      depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    text.remove_prefix(std::min(text.size(), i + 1));
  }
  return text;
}

/// Collects the declarations that a user of a header sees, without initialisers. It skips namespaces named detail,
/// private and protected parts, and function bodies.
class PublicDeclarations {
 public:
  explicit PublicDeclarations(const std::string& header) : text_(bare(header)) { scope(false, false); }
  [[nodiscard]] const std::vector<std::string>& found() const { return found_; }

 private:
  void scope(bool hidden, bool in_class) {
    std::string statement;
    int round = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      round += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == '}' && round == 0) break;
      if (c == ':' && in_class && round == 0 && text_.compare(at_, 2, "::") != 0 &&
          (at_ == 0 || text_[at_ - 1] != ':')) {
        const std::string_view label = trimmed(statement);
        if (label == "public" || label == "private" || label == "protected") {
          hidden = label != "public";
          statement.clear();
          continue;
        }
      }
      if (c == ';' && round == 0) {
        keep(statement, hidden);
        statement.clear();
      } else if (c == '{' && round == 0) {
        enter(statement, hidden);
      } else {
        statement += c;
      }
    }
  }
  /// Handles the block after `statement`: enters a namespace or class, skips anything else.
  void enter(std::string& statement, bool hidden) {
    const std::string_view declared = without_head(statement);
    const bool name_space = begins_with_word(declared, "namespace");
    const bool type = begins_with_word(declared, "class") || begins_with_word(declared, "struct");
    const bool list = begins_with_word(declared, "enum") || begins_with_word(declared, "union");
    const bool body = !name_space && !type && !list;
    if (!name_space) keep(statement, hidden);
    ++at_;
    if (name_space || type) {
      const bool inside = hidden || (name_space && declared.find("detail") != std::string_view::npos) ||
                          begins_with_word(declared, "class");
      const bool begins_hidden = type && begins_with_word(declared, "class");
      scope(name_space ? inside : hidden || begins_hidden, type && !hidden);
    } else {
      skip_block();
    }
    if (name_space || body) statement.clear();
    if (type || list) statement.clear();
  }
  void skip_block() {
    for (int depth = 1; at_ < text_.size(); ++at_) {
      depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
      if (depth == 0) return;
    }
  }
  void keep(const std::string& statement, bool hidden) {
    std::string_view declared = without_head(statement);
    // An alias is how a public name hides parameters that exist for tests. A concept is checked as a whole.
    for (const char* word : {"static_assert", "friend", "using", "concept"})
      if (begins_with_word(declared, word)) return;
    if (hidden) return;
    const std::string_view head = std::string_view(statement).substr(0, statement.size() - declared.size());
    if (const std::size_t initialiser = declared.find(" = "); initialiser != std::string_view::npos)
      declared = declared.substr(0, initialiser);
    // A constructor's initialiser list is part of its body.
    for (std::size_t close = declared.find(')'); close != std::string_view::npos; close = declared.find(')', close + 1))
      if (without_noexcept(declared.substr(close + 1)).starts_with(':')) declared = declared.substr(0, close + 1);
    found_.push_back(std::string(head) + std::string(declared));
  }

  std::string text_;
  std::size_t at_ = 0;
  std::vector<std::string> found_;
};

/// Returns the public declarations of a header that name something in a namespace detail.
std::vector<std::string> leaks(const std::string& header) {
  std::vector<std::string> found = PublicDeclarations(header).found();
  std::erase_if(found, [](const std::string& declared) { return declared.find("detail::") == std::string::npos; });
  return found;
}

TEST(PublicFace, IsWhatTheUmbrellaIncludesAndNothingOfTheBackRooms) {
  Names umbrella;
  for (const Header& header : headers())
    if (header.name == "reprise/reprise.hpp") umbrella = own_includes(header.text);
  for (const Header& header : headers()) {
    if (header.name == "reprise/reprise.hpp") continue;
    const bool listed = umbrella.contains(header.name);
    EXPECT_EQ(listed, !header.detail && !is_public_by_list(header))
        << header.name << (listed ? ": not public, yet reprise.hpp includes it" : ": public, yet not in reprise.hpp");
  }
}

TEST(PublicFace, IsAboutSeventyHeaders) {
  std::size_t count = 0;
  for (const Header& header : headers())
    if (header.name == "reprise/reprise.hpp") count = own_includes(header.text).size();
  EXPECT_LE(count, 75U) << "a newcomer has to see the public headers at a glance";
  EXPECT_GE(count, 40U);
}

TEST(PublicFace, NamesNothingOfTheBackRoomsInItsSignatures) {
  for (const Header& header : headers())
    if (!header.detail)
      for (const std::string& declared : leaks(header.text)) ADD_FAILURE() << header.name << ": " << declared;
}

TEST(PublicFace, ALeakWouldBeFound) {
  EXPECT_EQ(leaks("namespace reprise { detail::A f(int x); }").size(), 1U);
  EXPECT_EQ(leaks("namespace reprise { template <class T> void f(detail::B<T> "
                  "x) { detail::C c; } }")
                .size(),
            1U);
  EXPECT_EQ(leaks("namespace reprise { class A { detail::B b; public: "
                  "detail::C c() const { return d; } }; }")
                .size(),
            1U);
  EXPECT_EQ(leaks("namespace reprise { struct A : detail::Base { int i; }; }").size(), 1U);
  EXPECT_EQ(leaks("namespace reprise { template <class T = detail::X> class A {}; }").size(), 1U);
}
TEST(PublicFace, NoLeakIsFoundWhereThereIsNone) {
  EXPECT_TRUE(leaks("namespace reprise { using A = detail::B<32>; }").empty());
  EXPECT_TRUE(leaks("namespace reprise { struct A { A() noexcept : a_(detail::f()) {} }; }").empty());
  EXPECT_TRUE(leaks("namespace reprise::detail { detail::A f(); }").empty());
  EXPECT_TRUE(leaks("namespace reprise { namespace detail { detail::A f(); } "
                    "int g() { return detail::f(); } }")
                  .empty());
  EXPECT_TRUE(leaks("namespace reprise { class A { public: int f(); private: "
                    "detail::B b; }; }")
                  .empty());
  EXPECT_TRUE(leaks("namespace reprise { // detail::A\ninline int x = detail::f(); }").empty());
  EXPECT_TRUE(leaks("namespace reprise { static_assert(detail::x); int a; }").empty());
}

}  // namespace
}  // namespace house
