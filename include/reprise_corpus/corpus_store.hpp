// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/core/datastore.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/detail/corpus_matches.hpp"
#include "reprise_corpus/detail/corpus_view.hpp"

namespace reprise { inline namespace v0 {

/// A datastore of any size: read-only text, with a sorted list of all its suffixes. Bytes in memory and a mapped file
/// (corpus/mapped_corpus.hpp) work alike. Nothing is loaded or copied.
///
/// **Trust.** open() checks the header only, so it takes the same time for any size. A damaged or forged corpus gives
/// wrong drafts, and never a read outside of its bytes, nor a token outside of its vocabulary. Matches are compared
/// token by token, as Datastore requires. verify_corpus() checks everything.
///
/// **Cost.** find() makes up to five rounds of binary searches, and mostly one. The searches of a round advance in lock
/// step, so that their cache misses overlap; 10 to 40 misses follow one another. docs/serving.md has times. On a cold
/// page cache, each miss may read a page from the disk. read() is one cache miss for each 32 tokens of 2 bytes.
///
/// **Threads.** Any number of threads may read. The bytes must not change and must outlive the store and its copies,
/// which are views of the same bytes.
///
/// Method: a suffix array (Manber and Myers 1990), as REST (He et al. 2023) and infini-gram (Liu et al. 2024) use it.
class CorpusStore {
 public:
  /// What a reader expects of a corpus. A corpus of another tokenizer finds text, but of another meaning.
  struct Identity {
    std::uint64_t fingerprint = 0;  ///< CorpusOptions::fingerprint
    std::uint32_t vocabulary = 0;   ///< CorpusOptions::vocabulary
    friend bool operator==(const Identity&, const Identity&) = default;
  };

  /// A document in a corpus.
  struct DocumentRange {
    StorePlace begin = 0;   ///< the place of the first token
    StorePlace end = 0;     ///< the place after the last token
    std::string_view name;  ///< in the bytes of the corpus
  };

  /// A token that has followed a context in a corpus, and how often.
  struct NextToken {
    Token token = 0;
    std::uint64_t count = 0;
    friend bool operator==(const NextToken&, const NextToken&) = default;
  };

  /// The result of CorpusStore::continuations().
  struct Continuations {
    std::size_t size = 0;        ///< next tokens written
    std::uint64_t distinct = 0;  ///< different next tokens, written or not
    std::uint64_t total = 0;     ///< occurrences of the context
    std::uint64_t ended = 0;     ///< occurrences at the end of a document, without a next token
    friend bool operator==(const Continuations&, const Continuations&) = default;
  };

  /// Lookups use at most this many of the last tokens of a context.
  static constexpr std::size_t most_context = detail::CorpusFormat::least_depth;
  static constexpr std::size_t most_matches = 32;  ///< maximum number of matches per find()

  /// Creates a view of an empty corpus, which finds nothing.
  CorpusStore() noexcept = default;

  /// Checks the header and returns a view of the bytes. Errors:
  ///
  ///  * not_a_corpus.
  ///  * corpus_truncated (`value`: the bytes given, `limit`: the bytes expected).
  ///  * corpus_damaged if the checksum of the header is wrong, or if bytes follow the end (`value`: their offset).
  ///  * newer_version (`value`: the version of the corpus, `limit`: the newest version that this build knows).
  ///  * corpus_forged if the header's checksum is right, but reprise never writes such a header.
  ///
  /// Cost: a pass over 256 bytes; no allocation.
  [[nodiscard]] static Result<CorpusStore> open(std::span<const std::byte> bytes) noexcept {
    const auto header = detail::decode(bytes);
    if (!header) return header.error();
    CorpusStore store;
    store.view_ = detail::CorpusView(bytes, *header);
    return store;
  }
  /// Like the function above, and refuses a corpus of another tokenizer. Further errors: other_vocabulary and
  /// other_tokenizer (`value`: the number of the corpus, `limit`: the number expected).
  [[nodiscard]] static Result<CorpusStore> open(std::span<const std::byte> bytes, const Identity& expected) noexcept {
    auto store = open(bytes);
    if (!store) return store;
    const Identity found = store->identity();
    if (found.vocabulary != expected.vocabulary)
      return Error{ErrorCode::other_vocabulary,
                   "the corpus was built for a vocabulary of another size: build it with the vocabulary of this model",
                   found.vocabulary, expected.vocabulary};
    if (found.fingerprint != expected.fingerprint)
      return Error{ErrorCode::other_tokenizer,
                   "the corpus belongs to another tokenizer: build it with this tokenizer, and with its fingerprint",
                   found.fingerprint, expected.fingerprint};
    return store;
  }

  // The functions of a Datastore.

  /// Looks up the last tokens of `suffix`. Writes up to min(out.size(), most_matches) matches and returns their number.
  /// The longest matches come first. Occurrences at the end of a document are left out. If a length has more
  /// occurrences than are wanted, the matches are spread over the sorted range of its continuations. So among the
  /// matches of one length, next tokens are about as frequent as in the corpus.
  [[nodiscard]] std::size_t find(TokenSpan suffix, std::span<StoreMatch> out) const noexcept {
    return narrow() ? detail::CorpusMatches<std::uint16_t>(view_, suffix).find(out)
                    : detail::CorpusMatches<std::uint32_t>(view_, suffix).find(out);
  }
  /// Writes the tokens from `place` on, until `out` is full or the document ends. Any place is allowed; at a place
  /// outside of the corpus there are no tokens.
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    return narrow() ? read_words<std::uint16_t>(place, out) : read_words<std::uint32_t>(place, out);
  }
  /// Does nothing, because nothing is evicted.
  void touch(StorePlace /*place*/) const noexcept {}

  // Counts.

  /// Returns the exact number of occurrences of `context`, which may have up to most_context tokens; the number of
  /// tokens if `context` is empty. Of a longer context, only the last tokens count. Cost: as find().
  [[nodiscard]] std::uint64_t count(TokenSpan context) const noexcept { return range_of(context).size(); }

  /// Counts the tokens that follow the occurrences of `context`, as count() finds them. Writes the most frequent ones,
  /// by falling count; among equal counts, the smaller token comes first. Cost: two binary searches for each different
  /// next token, and for each of them up to out.size() comparisons.
  [[nodiscard]] Continuations continuations(TokenSpan context, std::span<NextToken> out) const noexcept {
    const detail::SuffixRange range = range_of(context);
    const std::size_t length = std::min(context.size(), most_context);
    Continuations result;
    result.total = range.size();
    const auto add = [&](std::uint64_t id, std::uint64_t count) {
      if (id >= identity().vocabulary) {
        result.ended += count;
        return;
      }
      ++result.distinct;
      insert({static_cast<Token>(id), count}, out, result.size);
    };
    narrow() ? detail::for_each_next<std::uint16_t>(view_, range, length, add)
             : detail::for_each_next<std::uint32_t>(view_, range, length, add);
    return result;
  }

  // Properties and documents.

  [[nodiscard]] Identity identity() const noexcept { return {view_.header().fingerprint, view_.header().vocabulary}; }
  /// Returns the number of tokens in all documents.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return view_.tokens(); }
  [[nodiscard]] std::uint64_t documents() const noexcept { return view_.header().documents; }
  /// Returns the size of the corpus in bytes.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return view_.layout().file_bytes; }

  /// Returns a document; an empty one if `index` is not less than documents(). In a forged corpus, documents may
  /// overlap, but lie within the corpus.
  [[nodiscard]] DocumentRange document(std::uint64_t index) const noexcept {
    if (index >= documents()) return {};
    const std::uint64_t next = std::min(view_.document_begin(index + 1), view_.words());
    const std::uint64_t end = next - std::min<std::uint64_t>(next, 1);  // without the separator
    return {std::min(view_.document_begin(index), end), end, view_.name(index)};
  }
  /// Returns the index of the document that holds `place`; documents() if the place is outside of the corpus. The place
  /// after a document's last token belongs to that document. Cost: a binary search.
  [[nodiscard]] std::uint64_t document_of(StorePlace place) const noexcept {
    if (place >= view_.words()) return documents();
    // The first document is not asked: in a forged corpus it may begin anywhere.
    const auto is_later = [&](std::uint64_t document) { return view_.document_begin(document) > place; };
    return detail::first_past(1, documents(), is_later) - 1;
  }

 private:
  [[nodiscard]] bool narrow() const noexcept { return view_.header().token_bytes == sizeof(std::uint16_t); }

  [[nodiscard]] detail::SuffixRange range_of(TokenSpan context) const noexcept {
    if (context.empty()) return {0, view_.tokens()};
    return narrow() ? detail::CorpusMatches<std::uint16_t>(view_, context).range()
                    : detail::CorpusMatches<std::uint32_t>(view_, context).range();
  }

  template <detail::CorpusWord Word>
  [[nodiscard]] StoreRun read_words(StorePlace place, std::span<Token> out) const noexcept {
    const auto text = view_.text<Word>();
    const auto is_token = [&] { return place < text.size() && text.word(place) < identity().vocabulary; };
    std::size_t size = 0;
    for (; size < out.size(); ++size, ++place) {
      if (!is_token()) return {size, no_place};
      out[size] = static_cast<Token>(text.word(place));
    }
    return {size, is_token() ? place : no_place};
  }

  /// Inserts `next` into the first `size` entries of `out`, which are sorted; drops the last one if `out` is full.
  static void insert(const NextToken& next, std::span<NextToken> out, std::size_t& size) noexcept {
    if (size == out.size() && (size == 0 || out[size - 1].count >= next.count)) return;
    size += size < out.size() ? 1 : 0;
    std::size_t at = size - 1;
    for (; at > 0 && out[at - 1].count < next.count; --at) out[at] = out[at - 1];
    out[at] = next;
  }

  detail::CorpusView view_;
};

static_assert(Datastore<CorpusStore>);

}}  // namespace reprise
