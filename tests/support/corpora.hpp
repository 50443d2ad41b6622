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
#include "reprise_corpus/corpus_store.hpp"
#include "reprise_corpus/corpus_writer.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/verify_corpus.hpp"
#include "reprise_testing/random.hpp"

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
    const auto offset = detail::load_little<std::uint64_t>(&bytes[at]);
    const auto size = detail::load_little<std::uint64_t>(&bytes[at + 8]);
    if (offset > bytes.size() || size > bytes.size() - offset) continue;
    detail::store_little(detail::Xxh64::of(std::span<const std::byte>(bytes).subspan(offset, size)), &bytes[at + 16]);
  }
  detail::store_little(detail::Xxh64::of(std::span<const std::byte>(bytes).first(checksum_at)), &bytes[checksum_at]);
}

/// Reads a corpus in all ways, and returns the first broken promise; an empty text if there is none. The bytes may be
/// anything. A sanitizer sees reads beyond their end if they are all of an allocation. Without `check`, verify_corpus()
/// is not called.
inline std::string read_corpus(std::span<const std::byte> bytes, TokenSpan context, bool check) {
  const auto store = CorpusStore::open(bytes);
  const bool verified = check && verify_corpus(bytes);
  if (!store) return verified ? "a corpus that cannot be opened was verified" : "";
  const auto in_vocabulary = [&](Token token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < store->identity().vocabulary;
  };
  for (std::size_t next_length = 0; next_length <= context.size(); next_length += 1 + next_length / 2) {
    // The lengths 0, 1, 2, 4, 7, ... and that of the whole context instead of the last one.
    const bool last = next_length + 1 + next_length / 2 > context.size();
    const TokenSpan suffix = context.last(last ? context.size() : next_length);
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
    std::array<CorpusStore::NextToken, 3> next;
    const CorpusStore::Continuations counted = store->continuations(suffix, next);
    if (counted.total != store->count(suffix)) return "two counts of one context differ";
    for (const CorpusStore::NextToken& each : std::span(next).first(counted.size))
      if (!in_vocabulary(each.token) || each.count == 0) return "a counted token that cannot be";
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(store->documents(), 100); ++i) {
    const CorpusStore::DocumentRange document = store->document(i);
    std::array<Token, 3> tokens{};
    static_cast<void>(store->read(document.begin, tokens));
    if (document.begin > document.end || document.name.size() > bytes.size()) return "a document that cannot be";
  }
  return "";
}

/// Like the function above, with a copy of the bytes and all checks.
inline std::string read_any_corpus(std::span<const std::byte> input, TokenSpan context) {
  return read_corpus(CorpusBytes(input.begin(), input.end()), context, true);
}

/// The corpora that ForgedCorpus changes: both widths of tokens, both widths of places, and documents that repeat.
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

/// One of forged_corpora() with some bytes changed and the right checksums. The corpora with tokens of four bytes have
/// half a megabyte of starts. So bytes are changed in place and put back, and only changed sections are hashed.
class ForgedCorpus {
 public:
  /// The first byte of `data` chooses a corpus, and each four bytes after it change one byte.
  /// Requires at least one byte.
  explicit ForgedCorpus(std::span<const std::byte> data)
      : whole_(forged_corpora()[std::to_integer<std::size_t>(data[0]) % forged_corpora().size()]),
        layout_(layout_of(detail::decode(whole_).value())),
        bytes_(working_copies()[std::to_integer<std::size_t>(data[0]) % forged_corpora().size()]) {
    const auto all = data;
    for (data = data.subspan(1); data.size() >= 4; data = data.subspan(4)) {
      const std::size_t at = offset_of(detail::load_little<std::uint16_t>(data.data()));
      bytes_[at] = (data[2] & std::byte{1}) != std::byte{0} ? data[3] : bytes_[at] ^ data[3];
      changed_.push_back(at);
    }
    checked_ = bytes_.size() < 100'000 || detail::Xxh64::of(all) % 64 == 0;
    repair();
  }
  ForgedCorpus(const ForgedCorpus&) = delete;
  ForgedCorpus& operator=(const ForgedCorpus&) = delete;
  ~ForgedCorpus() {
    for (const std::size_t at : changed_) bytes_[at] = whole_[at];
    std::copy_n(whole_.begin(), detail::CorpusFormat::header_bytes, bytes_.begin());
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  /// Returns true if the checksums of the sections are right, for verify_corpus(). The header's is always right.
  /// Hashing and verifying a large corpus takes ten times as long as reading it, so that is done for one input in 64.
  [[nodiscard]] bool checked() const { return checked_; }

 private:
  static std::vector<CorpusBytes>& working_copies() {
    static std::vector<CorpusBytes> all = forged_corpora();
    return all;
  }
  /// Returns an offset. Those in the middle of large starts are left out.
  [[nodiscard]] std::size_t offset_of(std::size_t number) const {
    constexpr std::size_t ends = 256;  // bytes of the starts that are not left out
    const auto starts = layout_[detail::CorpusSection::starts];
    const auto left_out = static_cast<std::size_t>(starts.bytes > 4 * ends ? starts.bytes - ends : 0);
    const std::size_t at = number % (whole_.size() - left_out);
    return at < starts.offset + ends / 2 ? at : at + left_out;
  }
  /// Writes the right checksums.
  void repair() {
    constexpr std::size_t checksum_at = detail::CorpusFormat::header_bytes - 8;
    for (std::size_t i = 0; checked_ && i < detail::corpus_sections; ++i) {
      const std::size_t at = 72 + 24 * i;
      const auto offset = detail::load_little<std::uint64_t>(&bytes_[at]);
      const auto size = detail::load_little<std::uint64_t>(&bytes_[at + 8]);
      if (offset > bytes_.size() || size > bytes_.size() - offset) continue;
      const bool same = offset == layout_.parts[i].offset && size == layout_.parts[i].bytes &&
                        std::none_of(changed_.begin(), changed_.end(),
                                     [&](std::size_t byte) { return byte >= offset && byte - offset < size; });
      detail::store_little(same ? detail::load_little<std::uint64_t>(&whole_[at + 16])
                                : detail::Xxh64::of(bytes().subspan(offset, size)),
                           &bytes_[at + 16]);
    }
    detail::store_little(detail::Xxh64::of(bytes().first(checksum_at)), &bytes_[checksum_at]);
  }

  const CorpusBytes& whole_;
  detail::CorpusLayout layout_;
  CorpusBytes& bytes_;
  std::vector<std::size_t> changed_;
  bool checked_ = true;
};

/// The body of the fuzzer: reads `data` as a corpus, and as a description of a forged one.
inline std::string read_any_corpora(std::span<const std::byte> data) {
  const std::vector<Token> context = {3, -1, 2, 1, 0, 2, 1, 0, 0, 1, 2, 2};
  std::string fault = read_any_corpus(data, context);
  if (!fault.empty() || data.empty()) return fault;
  const ForgedCorpus forged(data);
  return read_corpus(forged.bytes(), context, forged.checked());
}

}  // namespace reprise::testing
