// SPDX-License-Identifier: Apache-2.0
// Every header outside of a folder detail/ is public. No public signature names a private thing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "house/declarations.hpp"
#include "house/headers.hpp"

namespace house::public_face_test {
namespace {

/// Returns the declaration without the bases of a class, which may be private: users name only the class.
std::string without_bases(const std::string& declared) {
  const std::string_view type = without_head(declared);
  if (!begins_with_word(type, "class") && !begins_with_word(type, "struct")) return declared;
  return declared.substr(0, declared.find(" : ", declared.size() - type.size()));
}

/// Public declarations of a header that name something of a namespace detail.
std::vector<std::string> leaks(const std::string& header) {
  std::vector<std::string> found = PublicDeclarations(header).found();
  std::transform(found.begin(), found.end(), found.begin(), without_bases);
  std::erase_if(found, [](const std::string& declared) { return declared.find("detail::") == std::string::npos; });
  return found;
}

TEST(PublicFace, UmbrellasHoldTheirFolderAndNothingOfTheBackRooms) {
  for (const Header& umbrella : headers()) {
    if (!is_umbrella(umbrella.name)) continue;
    const Names included = own_includes(umbrella.text);
    for (const std::string& name : included) EXPECT_FALSE(is_detail(name)) << umbrella.name << " includes " << name;
    const std::string folder = umbrella.name.substr(0, umbrella.name.size() - 4) + "/";  // reprise/batch/
    for (const Header& header : headers()) {
      const bool expected =
          header.name.starts_with(folder) && !header.detail && !system_headers().contains(header.name);
      EXPECT_TRUE(!expected || included.contains(header.name)) << umbrella.name << " lacks " << header.name;
    }
  }
}

/// The words of the compiled code in examples/: a user finds there how a type is used.
Names words_of_examples() {
  Names found;
  for (const auto& entry : fs::recursive_directory_iterator(root() / "examples"))
    if (Names{".cpp", ".hpp", ".cu", ".cuh"}.contains(entry.path().extension().string()))
      for (const std::string& word : words_of(bare(read(entry.path())))) found.insert(word);
  return found;
}
/// The types among the names that a header declares: they begin with a capital letter.
Names declared_types(const std::string& header) {
  Names found;
  for (const std::string& name : declared_names(header)) {
    const std::string last = name.substr(name.rfind(':') + 1);  // npos + 1 is 0
    if (std::isupper(static_cast<unsigned char>(last.front())) != 0) found.insert(last);
  }
  return found;
}

TEST(PublicFace, HasATypeOnlyIfAnExampleUsesIt) {
  const Names used = words_of_examples();
  std::size_t count = 0;
  for (const Header& header : headers()) {
    if (header.detail) continue;
    const Names types = declared_types(header.text);
    count += types.size();
    for (const std::string& type : types)
      EXPECT_TRUE(used.contains(type)) << header.name << " declares " << type
                                       << ": use it in a program of examples/, with a sentence that says when";
  }
  EXPECT_LE(count, 160U) << "a person has to be able to list the public types";
  EXPECT_GE(count, 100U) << "types are not found any more";
}
TEST(PublicFace, TypesAreFoundByTheirCapitals) {
  EXPECT_EQ(declared_types("namespace reprise { struct A {}; using Bc = int; enum class D { e }; template <class T> "
                           "concept E = true; int f(A a); namespace detail { struct G {}; } }"),
            (Names{"A", "Bc", "D", "E"}));
}

TEST(PublicFace, IsSeenAtAGlance) {
  const auto counted = [](std::string_view folder) {
    return std::count_if(headers().begin(), headers().end(),
                         [&](const Header& header) { return header.name.starts_with(folder) && !header.detail; });
  };
  EXPECT_LE(counted("reprise/"), 46) << "a newcomer has to see the public headers of the core at a glance";
  EXPECT_LE(counted("reprise") + 1, 70) << "with the parts beside it, and reprise.h, which is no .hpp";
  EXPECT_GE(counted("reprise/"), 30);
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
  EXPECT_EQ(leaks("namespace reprise { template <class T = detail::X> class A : B { int i; }; }").size(), 1U);
  EXPECT_EQ(leaks("namespace reprise { template <class T = detail::X> class A {}; }").size(), 1U);
}
TEST(PublicFace, NoLeakIsFoundWhereThereIsNone) {
  EXPECT_TRUE(leaks("namespace reprise { using A = detail::B<32>; }").empty());
  EXPECT_TRUE(leaks("namespace reprise { struct A { A() noexcept : a_(detail::f()) {} }; }").empty());
  EXPECT_TRUE(leaks("namespace reprise { struct A : detail::Base { int i; }; }").empty());
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
}  // namespace house::public_face_test
