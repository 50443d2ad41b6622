// SPDX-License-Identifier: Apache-2.0
// Comments and pages are written in short and plain sentences. The rules are in CONTRIBUTING.md.
#include "house/language.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "house/headers.hpp"

namespace language_test {
namespace {

using house::comment_sentences;
using house::Language;
using house::page_of;
using house::Sentence;

struct File {
  std::string name;
  std::vector<Sentence> sentences;
  std::vector<std::size_t> broken_lines;
};

bool has_extension(const house::fs::path& path, std::initializer_list<std::string_view> extensions) {
  const std::string own = path.extension().string();
  return std::find(extensions.begin(), extensions.end(), own) != extensions.end();
}

/// The files below `folder` with these extensions.
std::vector<house::fs::path> files_below(const house::fs::path& folder,
                                         std::initializer_list<std::string_view> extensions) {
  std::vector<house::fs::path> found;
  for (const auto& entry : house::fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && has_extension(entry.path(), extensions)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string name_of(const house::fs::path& path) { return house::fs::relative(path, house::root()).generic_string(); }

std::vector<File> code_in(const char* folder) {
  std::vector<File> files;
  for (const auto& path : files_below(house::root() / folder, {".hpp", ".cpp", ".h"}))
    files.push_back({name_of(path), comment_sentences(house::read(path)), {}});
  return files;
}

std::vector<File> pages() {
  std::vector<File> files;
  for (const auto& path : house::markdown_files()) {
    house::Page page = page_of(house::read(path));
    files.push_back({name_of(path), std::move(page.sentences), std::move(page.broken_lines)});
  }
  return files;
}

/// The sentences that a rule names, one a line, for the person who mends them.
template <class Breaks>
std::string listed(const std::vector<File>& files, Breaks&& breaks) {
  std::ostringstream out;
  for (const File& file : files)
    for (const Sentence& sentence : file.sentences)
      if (breaks(sentence))
        out << file.name << ':' << sentence.line << ": " << sentence.words << " words: " << sentence.text << '\n';
  return out.str();
}

void expect_plain(const std::vector<File>& files) {
  Language language;
  for (const File& file : files)
    for (const Sentence& sentence : file.sentences) language.count(sentence);
  ASSERT_GT(language.sentences, 0U);
  EXPECT_EQ(language.behinds, 0U) << "write \"after\" or \"below\":\n"
                                  << listed(files,
                                            [](const Sentence& s) { return house::count_of(s.text, "behind") > 0; });
  EXPECT_LE(2 * language.whats * 1000, 3 * language.words)
      << "more than 1.5 \"what\" for each 1,000 words; put a noun in its place:\n"
      << listed(files, [](const Sentence& s) { return s.text.back() != '?' && house::count_of(s.text, "what") > 0; });
  EXPECT_LE(language.above_25 * 20, language.sentences)
      << "more than 5% of the sentences have more than 25 words:\n"
      << listed(files, [](const Sentence& s) { return s.words > 25; });
  EXPECT_EQ(language.above_40, 0U) << listed(files, [](const Sentence& s) { return s.words > 40; });
}

TEST(Language, OfTheHeadersIsPlain) { expect_plain(code_in("include")); }
TEST(Language, OfTheBenchmarksAndToolsIsPlain) { expect_plain(code_in("bench")); }
TEST(Language, OfTheExamplesIsPlain) { expect_plain(code_in("examples")); }
TEST(Language, OfTheTestsIsPlain) { expect_plain(code_in("tests")); }

TEST(Language, OfThePagesIsPlain) {
  const std::vector<File> all = pages();
  expect_plain(all);
  for (const File& file : all)
    for (const std::size_t line : file.broken_lines)
      ADD_FAILURE() << file.name << ':' << line << ": a line of Markdown holds one sentence, whole";
}

std::vector<std::string> texts(const std::vector<Sentence>& sentences) {
  std::vector<std::string> found;
  std::transform(sentences.begin(), sentences.end(), std::back_inserter(found),
                 [](const Sentence& sentence) { return sentence.text; });
  return found;
}
using Texts = std::vector<std::string>;

TEST(Sentences, EndAtFullStopsThatAreFollowedByABlank) {
  EXPECT_EQ(texts(comment_sentences("// One of 0.5 ms. Two (in b.hpp)? Three.\n")),
            (Texts{"One of 0.5 ms.", "Two (in b.hpp)?", "Three."}));
  EXPECT_EQ(texts(comment_sentences("// As e.g. here. Next\n")), (Texts{"As e.g. here.", "Next"}));
  EXPECT_EQ(texts(comment_sentences("// (A note.) Next\n")), (Texts{"(A note.)", "Next"}));
}

TEST(Sentences, GoOnInTheNextLineOfAComment) {
  EXPECT_EQ(texts(comment_sentences("/// One\n/// two. Three\nint a;\n// four\n")),
            (Texts{"One two.", "Three", "four"}));
  EXPECT_EQ(texts(comment_sentences("int a;  ///< one\n        ///< two\nint b;  // three\n// four\n")),
            (Texts{"one two", "three", "four"}));
  EXPECT_EQ(texts(comment_sentences("// Two:\n// * one\n//   more\n// * two\n//\n// three\n")),
            (Texts{"Two:", "* one more", "* two", "three"}));
}

TEST(Sentences, LeaveOutLicencesDirectivesAndCode) {
  EXPECT_EQ(texts(comment_sentences("// SPDX-License-Identifier: MIT\nint a;  // NOLINT(x)\n// clang-format off\n")),
            Texts());
  EXPECT_EQ(texts(comment_sentences("const char* a = \"// no comment\";  // one\nchar b = '\"';  // two\n")),
            (Texts{"one", "two"}));
  EXPECT_EQ(texts(comment_sentences("// One:\n// ```\n// what behind\n// ```\n// two\n")), (Texts{"One:", "two"}));
}

TEST(Sentences, SayWhereTheyBegin) {
  const auto found = comment_sentences("int a;\n/// One. Two\n/// three. Four.\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].line, 2U);
  EXPECT_EQ(found[1].line, 2U);
  EXPECT_EQ(found[2].line, 3U);
}

TEST(Words, AreRunsBetweenBlanksAndCodeIsOne) {
  const auto words = [](const std::string& text) { return house::count_words(house::prose(text)); };
  EXPECT_EQ(words("one two, three - four"), 4U);
  EXPECT_EQ(words("the call `f(a, b, c)` fails"), 4U);
  EXPECT_EQ(words("see [the long page](docs/a b.md) first"), 5U);
  EXPECT_EQ(words(""), 0U);
}

TEST(Words, AreCountedInCapitalsTooAndOnlyWhole) {
  EXPECT_EQ(house::count_of("What we do is what we say, whatever", "what"), 2U);
  EXPECT_EQ(house::count_of("behindhand", "behind"), 0U);
}

TEST(Counts, LeaveQuestionsAndCodeOut) {
  Language language;
  for (const Sentence& sentence : page_of("# What is it?\n\nIt is what it is.\nRun `what`.\n").sentences)
    language.count(sentence);
  EXPECT_EQ(language.whats, 1U);
  EXPECT_EQ(language.sentences, 3U);
}

TEST(Counts, AreOfSentencesAboveTheLimits) {
  const auto sentence = [](std::size_t words) {
    std::string text = "// a";
    for (std::size_t i = 1; i < words; ++i) text += " b";
    return comment_sentences(text + ".\n");
  };
  Language language;
  for (const std::size_t words : {25U, 26U, 40U, 41U}) language.count(sentence(words).at(0));
  EXPECT_EQ(language.above_25, 3U);
  EXPECT_EQ(language.above_40, 1U);
}

TEST(Markdown, HasOneSentenceALine) {
  const auto broken = [](const char* text) { return page_of(text).broken_lines; };
  using Lines = std::vector<std::size_t>;
  EXPECT_EQ(broken("One.\nTwo.\n\n* three\n* four.\n"), Lines());
  EXPECT_EQ(broken("One. Two.\n"), Lines{1});
  EXPECT_EQ(broken("One\ntwo.\n"), Lines{2});
  EXPECT_EQ(broken("The list:\n* one\n* two\n"), Lines());
  EXPECT_EQ(broken("| a. b | c |\n|---|---|\n```sh\na. b\n```\n<img a. b>\n# A. B\n"), Lines());
}

}  // namespace
}  // namespace language_test
