// SPDX-License-Identifier: Apache-2.0
// Holds docs/reference.md against the headers. Every public header and every name that it declares is on the page, with
// errors where a function returns a Result. The page names nothing that does not exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "house/declarations.hpp"
#include "house/headers.hpp"

namespace house::reference_test {
namespace {

/// The texts between backquotes.
std::vector<std::string> code_spans(const std::string& line) {
  std::vector<std::string> found;
  for (std::size_t open = line.find('`'); open != std::string::npos; open = line.find('`', open)) {
    const std::size_t close = line.find('`', open + 1);
    if (close == std::string::npos) break;
    found.push_back(line.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return found;
}
std::vector<std::string> cells(const std::string& row) {
  std::vector<std::string> found;
  std::istringstream text(row.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) found.push_back(cell);
  return found;
}
std::string without_call(std::string name) {
  if (name.ends_with("()")) name.erase(name.size() - 2);
  return name;
}

/// The names that one section of the page lists, each with the cell of its errors.
using Section = std::map<std::string, std::string>;

/// The sections of the page, by header. In the table of a layer, a row whose name is a header begins its section.
std::map<std::string, Section> sections(const std::string& page) {
  std::map<std::string, Section> found;
  Section* section = nullptr;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) section = nullptr;
    if (line.starts_with("| **`")) section = &found[code_spans(line)[0]];
    if (section == nullptr || !line.starts_with("| `")) continue;
    const auto row = cells(line);
    for (const std::string& name : code_spans(row[0]))
      section->emplace(without_call(name), row.size() > 2 ? row[2] : std::string());
  }
  return found;
}

bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !in_word(text[at - 1])) && (at + word.size() == text.size() || !in_word(text[at + word.size()])))
      return true;
  return false;
}

std::string page() { return read(root() / "docs/reference.md"); }

std::vector<Header> public_headers() {
  std::vector<Header> found = headers();
  std::erase_if(found, [](const Header& header) { return header.detail || is_umbrella(header.name); });
  return found;
}

TEST(Reference, HasASectionForEveryPublicHeaderAndForNoOther) {
  Names wanted;
  for (const Header& header : public_headers()) wanted.insert(header.name);
  Names listed;
  for (const auto& [name, section] : sections(page())) listed.insert(name);
  EXPECT_EQ(listed, wanted);
}

TEST(Reference, NamesWhatEachHeaderDeclares) {
  const auto all = sections(page());
  for (const Header& header : public_headers()) {
    const auto section = all.find(header.name);
    if (section == all.end()) continue;
    for (const std::string& name : declared_names(header.text))
      EXPECT_TRUE(section->second.contains(name)) << header.name << " declares " << name;
  }
}

TEST(Reference, ListsOnlyWhatItsHeaderDeclares) {
  const auto all = sections(page());
  for (const Header& header : public_headers()) {
    const auto section = all.find(header.name);
    if (section == all.end()) continue;
    const Names declared = declared_names(header.text);
    for (const auto& [name, errors] : section->second) {
      const std::size_t colons = name.rfind("::");
      const bool member = colons != std::string::npos && declared.contains(name.substr(0, colons)) &&
                          has_word(bare(header.text), name.substr(colons + 2));
      const bool macro = header.text.find("#define " + name) != std::string::npos;
      EXPECT_TRUE(declared.contains(name) || member || macro) << header.name << " does not declare " << name;
    }
  }
}

TEST(Reference, ListsErrorsWhereAFunctionReturnsAResult) {
  const auto all = sections(page());
  for (const Header& header : public_headers()) {
    const auto section = all.find(header.name);
    if (section == all.end() || header.layer == "testing") continue;
    const PublicDeclarations declarations(header.text);
    for (const std::string& declared : declarations.found()) {
      const std::size_t open = declared.find('(');
      if (open == std::string::npos || !has_word(declared.substr(0, open), "Result")) continue;
      const std::string name = words_of(declared.substr(0, open)).back();
      if (name == "Result") continue;  // its constructors
      EXPECT_TRUE(std::any_of(section->second.begin(), section->second.end(),
                              [&](const auto& entry) {
                                return (entry.first == name || entry.first.ends_with("::" + name)) &&
                                       entry.second.find('`') != std::string::npos;
                              }))
          << header.name << ": the errors of " << name;
    }
  }
}

TEST(Reference, HasEveryErrorCode) {
  std::string codes = bare(read(root() / "include/reprise/core/result.hpp"));
  codes = codes.substr(codes.find("enum class ErrorCode"));
  codes = codes.substr(codes.find('{'), codes.find('}') - codes.find('{'));
  const std::string text = page();
  const std::string table =
      text.substr(text.find("\n## Errors"), text.find("\n## Exceptions") - text.find("\n## Errors"));
  const std::vector<std::string> words = words_of(codes);
  EXPECT_GT(words.size(), 20U);
  for (const std::string& code : words) EXPECT_NE(table.find("\n| `" + code + "` |"), std::string::npos) << code;
}

TEST(Reference, NamesNothingThatDoesNotExist) {
  std::string text;
  for (const Header& header : headers()) text += header.text;
  const std::vector<std::string> all = words_of(text);
  const Names known(all.begin(), all.end());
  std::istringstream lines(page());
  for (std::string line; std::getline(lines, line);)
    for (const std::string& span : code_spans(line)) {
      if (span.find('/') != std::string::npos && span.find('<') == std::string::npos) {
        EXPECT_TRUE(span == "detail/" || fs::exists(root() / span) || fs::exists(root() / "include" / span) ||
                    fs::exists(root() / "include/reprise" / span))
            << span;
        continue;
      }
      for (const std::string& word : words_of(span)) EXPECT_TRUE(known.contains(word)) << word << " in " << line;
    }
}

TEST(Declarations, AreFoundByName) {
  EXPECT_EQ(declared_names("namespace reprise { template <class T> int A<T>::f(int x) { return x; } A::~A() {} "
                           "int b = C::d(); }"),
            (Names{"b"}));
  EXPECT_EQ(declared_names(
                "namespace reprise::inline v0 { using A = int; template <class T> class [[nodiscard]] B { int f(); "
                "}; enum class C : int { a, b }; template <class T> concept D = requires(T t) { t.f(); }; }"),
            (Names{"A", "B", "C", "D"}));
  EXPECT_EQ(
      declared_names("namespace reprise { template <A B> requires C<B> && (D) inline std::vector<int> f(int x = 0) "
                     "noexcept { return {}; } inline constexpr int g = 1; int h(); constexpr int i[] = {1, 2}; }"),
      (Names{"f", "g", "h", "i"}));
  EXPECT_EQ(
      declared_names("namespace reprise { namespace detail { int f(); } namespace presets { int g(); } } namespace "
                     "reprise::testing { int h(); }"),
      (Names{"presets::g", "h"}));
  EXPECT_EQ(
      declared_names("namespace reprise { static_assert(a); using b::c; bool operator==(A, B); template <> struct "
                     "D<int> { int e; }; template <class T> constexpr bool f<A<T>> = true; }"),
      (Names{"D", "f"}));
}

}  // namespace
}  // namespace house::reference_test
