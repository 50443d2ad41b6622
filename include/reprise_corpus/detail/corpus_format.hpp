// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise_corpus/detail/xxh64.hpp"

/// \file The header of a corpus, and where its sections lie. docs/formats.md documents every byte.

namespace reprise { inline namespace v0 { namespace detail {

/// The constants of the format.
struct CorpusFormat {
  /// The first byte is not ASCII, and the line endings reveal a transfer in text mode.
  static constexpr std::array<std::uint8_t, 8> magic = {0x93, 'R', 'P', 'C', '\r', '\n', 0x1a, '\n'};
  static constexpr std::uint32_t version = 1;
  static constexpr std::size_t header_bytes = 256;
  static constexpr std::uint64_t alignment = 64;    ///< of the offsets of sections
  static constexpr std::uint32_t depth = 64;        ///< tokens that sort a suffix
  static constexpr std::uint32_t least_depth = 32;  ///< a lookup compares so many tokens
  static constexpr std::uint64_t fence_stride = 64;
  static constexpr std::uint64_t most_words = (std::uint64_t{1} << 40) - 1;
  static constexpr std::uint32_t most_tokens = std::numeric_limits<Token>::max();
};

/// The sections, in the order in which they are stored.
enum class CorpusSection : std::uint8_t { tokens, documents, names, places, starts, fences };
inline constexpr std::size_t corpus_sections = 6;

/// The header of a corpus as a value. It alone decides where the sections lie.
struct CorpusHeader {
  std::uint32_t token_bytes = sizeof(std::uint16_t);
  std::uint32_t place_bytes = sizeof(std::uint32_t);
  std::uint32_t vocabulary = 0;  ///< every token is less than this
  std::uint32_t depth = CorpusFormat::depth;
  std::uint64_t fingerprint = 0;
  std::uint64_t words = 0;  ///< tokens, and one separator after each document
  std::uint64_t documents = 0;
  std::uint64_t name_bytes = 0;                            ///< the bytes of all names
  std::array<std::uint64_t, corpus_sections> checksums{};  ///< by section

  /// Sets the widths that a corpus of this vocabulary and of this many words has.
  constexpr void choose_widths() noexcept {
    token_bytes = vocabulary <= 0xffff ? 2 : 4;
    place_bytes = words <= std::uint64_t{1} << 32 ? 4 : 5;
  }
  /// Returns the number of suffixes: one for each token.
  [[nodiscard]] constexpr std::uint64_t tokens() const noexcept { return words - documents; }
  [[nodiscard]] constexpr std::uint64_t fences() const noexcept {
    return (tokens() + CorpusFormat::fence_stride - 1) / CorpusFormat::fence_stride;
  }
  friend constexpr bool operator==(const CorpusHeader&, const CorpusHeader&) = default;
};

/// The position of a section in the file.
struct CorpusPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The positions of all sections. The bytes between them are 0.
struct CorpusLayout {
  std::array<CorpusPart, corpus_sections> parts{};
  std::uint64_t file_bytes = 0;

  constexpr const CorpusPart& operator[](CorpusSection section) const noexcept {
    return parts[static_cast<std::size_t>(section)];
  }
};

constexpr CorpusLayout layout_of(const CorpusHeader& header) noexcept {
  constexpr std::uint64_t number = sizeof(std::uint64_t);
  const std::array<std::uint64_t, corpus_sections> bytes = {
      header.words * header.token_bytes,
      (header.documents + 1) * number,
      (header.documents + 1) * number + header.name_bytes,
      header.tokens() * header.place_bytes,
      (std::uint64_t{header.vocabulary} + 1) * number,
      header.fences() * number,
  };
  CorpusLayout layout;
  std::uint64_t end = CorpusFormat::header_bytes;
  for (std::size_t i = 0; i < corpus_sections; ++i) {
    const std::uint64_t offset =
        (end + CorpusFormat::alignment - 1) / CorpusFormat::alignment * CorpusFormat::alignment;
    layout.parts[i] = {offset, bytes[i]};
    end = offset + bytes[i];
  }
  layout.file_bytes = end;
  return layout;
}

/// Returns the bytes of the header.
inline std::array<std::byte, CorpusFormat::header_bytes> encode(const CorpusHeader& header) noexcept {
  std::array<std::byte, CorpusFormat::header_bytes> bytes{};
  std::byte* to = bytes.data();
  const auto put = [&to](auto number) {
    store_little(number, to);
    to += sizeof(number);
  };
  const CorpusLayout layout = layout_of(header);
  for (const std::uint8_t byte : CorpusFormat::magic) put(byte);
  put(CorpusFormat::version);
  put(static_cast<std::uint32_t>(CorpusFormat::header_bytes));
  put(layout.file_bytes);
  for (const std::uint32_t number : {header.token_bytes, header.place_bytes, header.vocabulary, header.depth})
    put(number);
  for (const std::uint64_t number : {header.fingerprint, header.words, header.documents, header.name_bytes})
    put(number);
  for (std::size_t i = 0; i < corpus_sections; ++i) {
    put(layout.parts[i].offset);
    put(layout.parts[i].bytes);
    put(header.checksums[i]);
  }
  constexpr std::size_t checksum_at = CorpusFormat::header_bytes - sizeof(std::uint64_t);
  store_little(Xxh64::of(std::span(bytes).first(checksum_at)), &bytes[checksum_at]);
  return bytes;
}

/// Returns the numbers in the header, without checks. Requires as many bytes as a header has.
inline CorpusHeader fields_of(const std::byte* bytes) noexcept {
  const auto small = [bytes](std::size_t at) { return load_little<std::uint32_t>(bytes + at); };
  const auto large = [bytes](std::size_t at) { return load_little<std::uint64_t>(bytes + at); };
  CorpusHeader header;
  header.token_bytes = small(24);
  header.place_bytes = small(28);
  header.vocabulary = small(32);
  header.depth = small(36);
  header.fingerprint = large(40);
  header.words = large(48);
  header.documents = large(56);
  header.name_bytes = large(64);
  for (std::size_t i = 0; i < corpus_sections; ++i) header.checksums[i] = large(72 + 24 * i + 16);
  return header;
}

/// Returns true if a corpus can have these numbers. After this check, no sum in layout_of() overflows.
constexpr bool is_possible(const CorpusHeader& header) noexcept {
  using Format = CorpusFormat;
  CorpusHeader expected = header;
  expected.choose_widths();
  // Wide places are allowed for any number of words.
  const bool widths = header.token_bytes == expected.token_bytes &&
                      (header.place_bytes == expected.place_bytes || header.place_bytes == 5);
  return widths && header.vocabulary >= 1 && header.vocabulary <= Format::most_tokens &&
         header.depth >= Format::least_depth && header.depth <= 0xffff && header.words <= Format::most_words &&
         header.documents <= header.words / 2 && (header.documents != 0 || header.words == 0) &&
         header.name_bytes <= Format::most_words && (header.documents != 0 || header.name_bytes == 0);
}

/// Checks the header and the size of the file, and returns the header. The sections are not read. Errors:
/// not_a_corpus, corpus_truncated, corpus_damaged, newer_version and corpus_forged, as CorpusStore::open() documents.
inline Result<CorpusHeader> decode(std::span<const std::byte> bytes) noexcept {
  using Format = CorpusFormat;
  for (std::size_t i = 0; i < std::min(bytes.size(), Format::magic.size()); ++i)
    if (std::to_integer<std::uint8_t>(bytes[i]) != Format::magic[i])
      return Error{ErrorCode::not_a_corpus,
                   "this does not begin like a corpus of reprise: give a file that reprise-index wrote"};
  const auto truncated = [&](std::uint64_t promised) {
    return Error{ErrorCode::corpus_truncated, "the end of the corpus is missing: take another copy of the file",
                 bytes.size(), promised};
  };
  if (bytes.size() < Format::header_bytes) return truncated(Format::header_bytes);
  constexpr std::size_t checksum_at = Format::header_bytes - sizeof(std::uint64_t);
  if (Xxh64::of(bytes.first(checksum_at)) != load_little<std::uint64_t>(&bytes[checksum_at]))
    return Error{ErrorCode::corpus_damaged, "the header of the corpus is damaged: take another copy of the file"};
  const auto version = load_little<std::uint32_t>(&bytes[8]);
  if (version > Format::version)
    return Error{ErrorCode::newer_version,
                 "a newer version of reprise wrote this corpus: update reprise, or build the corpus again", version,
                 Format::version};
  const CorpusHeader header = fields_of(bytes.data());
  const Error forged{ErrorCode::corpus_forged,
                     "reprise never writes such a header of a corpus: do not trust where the file comes from"};
  if (!is_possible(header)) return forged;
  // The bytes of a header are a function of its fields: this compares the offsets and the reserved bytes too.
  const auto expected = encode(header);
  if (!std::equal(expected.begin(), expected.end(), bytes.begin())) return forged;
  const std::uint64_t file_bytes = layout_of(header).file_bytes;
  if (bytes.size() < file_bytes) return truncated(file_bytes);
  if (bytes.size() > file_bytes)
    return Error{ErrorCode::corpus_damaged, "bytes follow the end of the corpus: take another copy of the file",
                 file_bytes, 0};
  return header;
}

/// Returns the number of `width` <= 8 bytes at `from`, lowest byte first.
inline std::uint64_t load_place(const std::byte* from, std::size_t width) noexcept {
  const std::uint64_t low = load_little<std::uint32_t>(from);
  return width == 4 ? low : low | std::to_integer<std::uint64_t>(from[4]) << 32;
}
/// Stores a place in 4 or 5 bytes.
inline void store_place(std::uint64_t place, std::byte* to, std::size_t width) noexcept {
  store_little(static_cast<std::uint32_t>(place), to);
  if (width == 5) to[4] = static_cast<std::byte>(place >> 32 & 255);
}

}}}  // namespace reprise::detail
