// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reprise/core/datastore.hpp"
#include "reprise/core/token.hpp"
#include "reprise/corpus/corpus_store.hpp"
#include "reprise/corpus/corpus_writer.hpp"
#include "reprise/corpus/detail/corpus_format.hpp"
#include "reprise/corpus/verify_corpus.hpp"
#include "reprise/testing/random.hpp"

/// \file Corpora for tests, a naive reference, and ways to forge corpora.

namespace reprise::testing {

// The conformance kit has a testing::detail of its own, which hides the library's if both are included.
namespace detail {
using namespace reprise::detail;
}

using CorpusBytes = std::vector<std::byte>;
using Documents = std::vector<std::vector<Token>>;

/// Returns a corpus of these documents, named d0, d1, ... With `wide_places`, each place takes 5 bytes.
inline CorpusBytes corpus_of(const Documents& documents, std::uint32_t vocabulary, std::uint64_t fingerprint = 0,
                             bool wide_places = false) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < documents.size(); ++i) names.push_back("d" + std::to_string(i));
  std::vector<CorpusDocument> list;
  for (std::size_t i = 0; i < documents.size(); ++i) list.push_back({documents[i], names[i]});
  auto header = detail::header_of(list, {vocabulary, fingerprint}).value();
  if (wide_places) header.place_bytes = 5;
  const auto made = detail::make_corpus(list, header);
  return made ? CorpusBytes(made->begin(), made->end()) : CorpusBytes();
}

/// Returns documents of random tokens below `alphabet`. Some of them repeat a document, or a part of one.
inline Documents random_documents(Random& random, std::size_t count, std::size_t longest, std::size_t alphabet) {
  Documents documents;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Token> tokens;
    if (!documents.empty() && random.chance(30)) {
      const auto& other = documents[random.below(documents.size())];
      const std::size_t begin = random.chance(50) ? 0 : random.below(other.size());
      tokens.assign(other.begin() + static_cast<std::ptrdiff_t>(begin), other.end());
    }
    const std::size_t more = random.chance(20) && !tokens.empty() ? 0 : 1 + random.below(longest);
    for (std::size_t j = 0; j < more; ++j) tokens.push_back(static_cast<Token>(random.below(alphabet)));
    documents.push_back(tokens);
  }
  return documents;
}

/// The text of a corpus, searched by scanning.
class ScannedCorpus {
 public:
  explicit ScannedCorpus(const Documents& documents) {
    for (const auto& document : documents) {
      if (document.empty()) continue;
      text_.insert(text_.end(), document.begin(), document.end());
      text_.push_back(end_);
    }
  }

  /// Returns the token at `place`; a negative number at the end of a document and of the text.
  [[nodiscard]] Token at(StorePlace place) const { return place < text_.size() ? text_[place] : end_; }
  [[nodiscard]] std::size_t words() const { return text_.size(); }

  /// Returns StoreMatch::agreements of the place.
  [[nodiscard]] std::uint32_t agreements(StorePlace next, TokenSpan suffix) const {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>({suffix.size(), next, 32}) && text_[next - 1 - i] != end_; ++i)
      bits |= std::uint32_t{text_[next - 1 - i] == suffix[suffix.size() - 1 - i]} << i;
    return bits;
  }
  /// Returns the number of matching tokens before each place that a token follows, longest match first.
  [[nodiscard]] std::vector<std::size_t> match_lengths(TokenSpan suffix) const {
    std::vector<std::size_t> lengths;
    for (std::size_t next = 1; next < text_.size(); ++next)
      if (text_[next] != end_)
        if (const int length = std::countr_one(agreements(next, suffix)); length > 0)
          lengths.push_back(static_cast<std::size_t>(length));
    std::sort(lengths.rbegin(), lengths.rend());
    return lengths;
  }
  /// Returns how often each token follows `context`; the negative number counts ends of documents.
  [[nodiscard]] std::map<Token, std::uint64_t> next_tokens(TokenSpan context) const {
    std::map<Token, std::uint64_t> counts;
    for (std::size_t begin = 0; begin + context.size() < text_.size(); ++begin)
      if (text_[begin] != end_ && std::equal(context.begin(), context.end(), text_.begin() + std::ptrdiff_t(begin)))
        ++counts[text_[begin + context.size()]];
    return counts;
  }

 private:
  static constexpr Token end_ = -1;
  std::vector<Token> text_;
};

/// Writes the right checksums into a corpus whose bytes were changed. Does nothing if the sections do not fit into the
/// bytes.
inline void repair_checksums(CorpusBytes& bytes) {
  using Format = detail::CorpusFormat;
  if (bytes.size() < Format::header_bytes) return;
  constexpr std::size_t checksum_at = Format::header_bytes - 8;
  for (std::size_t i = 0; i < detail::corpus_sections; ++i) {
    const std::size_t at = 72 + 24 * i;
    const auto offset = detail::load_number<std::uint64_t>(&bytes[at]);
    const auto size = detail::load_number<std::uint64_t>(&bytes[at + 8]);
    if (offset > bytes.size() || size > bytes.size() - offset) continue;
    detail::store_number(detail::Xxh64::of(std::span<const std::byte>(bytes).subspan(offset, size)), &bytes[at + 16]);
  }
  detail::store_number(detail::Xxh64::of(std::span<const std::byte>(bytes).first(checksum_at)), &bytes[checksum_at]);
}

/// Reads a corpus in all ways, and returns the first broken promise; an empty text if there is none. The bytes may be
/// anything. They are copied, so that a sanitizer sees reads beyond the end.
inline std::string read_any_corpus(std::span<const std::byte> input, TokenSpan context) {
  const CorpusBytes bytes(input.begin(), input.end());
  const auto store = CorpusStore::open(bytes);
  const auto verified = verify_corpus(bytes);
  if (!store) return verified ? "a corpus that cannot be opened was verified" : "";
  const auto in_vocabulary = [&](Token token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < store->identity().vocabulary;
  };
  for (std::size_t length = 0; length <= context.size(); ++length) {
    const TokenSpan suffix = context.last(length);
    std::array<StoreMatch, 40> found;
    const std::size_t count = store->find(suffix, found);
    if (count > CorpusStore::most_matches) return "too many matches";
    for (const StoreMatch& match : std::span(found).first(count)) {
      if ((match.agreements & 1) == 0) return "a match without agreement";
      std::array<Token, 5> tokens{};
      StoreRun run{0, match.next};
      for (int i = 0; i < 4 && run.next != no_place; ++i) {
        run = store->read(run.next, tokens);
        if (i == 0 && run.size == 0) return "a match without a token after it";
        for (const Token token : std::span(tokens).first(run.size))
          if (!in_vocabulary(token)) return "a token outside of the vocabulary";
      }
      if (verified && store->document_of(match.next) >= store->documents()) return "a match outside of all documents";
    }
    std::array<CorpusNextToken, 3> next;
    const CorpusContinuations counted = store->continuations(suffix, next);
    if (counted.total != store->count(suffix)) return "two counts of one context differ";
    for (const CorpusNextToken& each : std::span(next).first(counted.size))
      if (!in_vocabulary(each.token) || each.count == 0) return "a counted token that cannot be";
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(store->documents(), 100); ++i) {
    const CorpusDocumentRange document = store->document(i);
    std::array<Token, 3> tokens{};
    static_cast<void>(store->read(document.begin, tokens));
    if (document.begin > document.end || document.name.size() > bytes.size()) return "a document that cannot be";
  }
  return "";
}

/// The corpora that forge_corpus() changes: both widths of tokens, both widths of places, and documents that repeat.
inline const std::vector<CorpusBytes>& forged_corpora() {
  static const std::vector<CorpusBytes> all = [] {
    std::vector<CorpusBytes> made;
    for (const std::uint32_t vocabulary : {9U, 70'000U})
      for (const bool wide_places : {false, true}) {
        Random random(made.size() + 1);
        made.push_back(corpus_of(random_documents(random, 12, 30, 3), vocabulary, 5, wide_places));
      }
    return made;
  }();
  return all;
}

/// Returns a corpus that `data` describes: its first byte chooses a corpus, and each four bytes after it change one
/// byte. All checksums are right.
inline CorpusBytes forge_corpus(std::span<const std::byte> data) {
  if (data.empty()) return {};
  const auto& bases = forged_corpora();
  CorpusBytes bytes = bases[std::to_integer<std::size_t>(data[0]) % bases.size()];
  for (data = data.subspan(1); data.size() >= 4; data = data.subspan(4)) {
    const std::size_t at = detail::load_number<std::uint16_t>(data.data()) % bytes.size();
    bytes[at] = (data[2] & std::byte{1}) != std::byte{0} ? data[3] : bytes[at] ^ data[3];
  }
  repair_checksums(bytes);
  return bytes;
}

/// The body of the fuzzer: reads `data` as a corpus, and as a description of a forged one.
inline std::string read_any_corpora(std::span<const std::byte> data) {
  const std::vector<Token> context = {3, -1, 2, 1, 0, 2, 1, 0, 0, 1, 2, 2};
  std::string fault = read_any_corpus(data, context);
  if (fault.empty()) fault = read_any_corpus(forge_corpus(data), context);
  return fault;
}

}  // namespace reprise::testing
