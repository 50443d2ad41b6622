// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/byte_format.hpp"

/// \file The container of a snapshot: a header, then sections, each with a checksum. docs/formats.md documents every
/// byte. history_snapshot.hpp, cost_snapshot.hpp and table_snapshots.hpp write and read the contents of the
/// sections.

namespace reprise { inline namespace v0 {

/// The bytes of a file: data() and size(). They grow without an exception, so they are no std::vector.
using Bytes = detail::Buffer<std::byte>;

/// The kind of a section. Numbers are never reused: new contents get a new number. Readers skip sections of unknown
/// kinds.
enum class SectionKind : std::uint32_t {
  calibration = 1,  ///< a CalibrationState
  runs = 2,         ///< stored tokens
  costs = 3,        ///< pass costs of one engine
  next_tokens = 4,  ///< a table of next tokens
  // 5: a table of rankings alone, which is no longer written or read
};

namespace detail {

/// Returns the error of a section whose contents break a rule of the format. `at`: the offset in the section.
constexpr Error forged_section(std::size_t at, SectionKind kind) noexcept {
  return {ErrorCode::snapshot_forged,
          "the contents of a section of the snapshot break the rules of the format, though their checksum is right: do "
          "not trust where it comes from",
          at, static_cast<std::uint64_t>(kind)};
}

}  // namespace detail

/// Returns the size in bytes of a snapshot whose sections have contents of these lengths, in bytes.
constexpr std::size_t snapshot_bytes(std::initializer_list<std::size_t> section_lengths) noexcept {
  std::size_t bytes = detail::SnapshotFormat::header_bytes;
  for (const std::size_t length : section_lengths) bytes += detail::SnapshotFormat::section_header_bytes + length;
  return bytes;
}

/// Writes a snapshot into the caller's memory; snapshot_bytes() returns the size of the snapshot. Bytes beyond this
/// memory are only counted, not written. In that case finish() reports the number needed.
///
/// Cost: a pass over each section for its checksum, when it ends. No allocation. Threads: one at a time.
class SnapshotWriter {
 public:
  /// `tokenizer`: any number that identifies the tokenizer, such as a hash of its file. Only a reader with the same
  /// number can read the snapshot, because with a different tokenizer the same tokens mean different text.
  SnapshotWriter(std::span<std::byte> room, std::uint64_t tokenizer) noexcept : room_(room), tokenizer_(tokenizer) {}

  /// Ends the previous section and begins a new one. Requires that each kind is begun at most once, and that there are
  /// at most 64 sections.
  void begin_section(SectionKind kind) noexcept {
    REPRISE_EXPECTS(sections_ < detail::SnapshotFormat::most_sections && !has_begun(kind));
    end_section();
    section_ = position_;
    store(section_, static_cast<std::uint32_t>(kind));
    position_ += detail::SnapshotFormat::section_header_bytes;
    kinds_[sections_++] = kind;
  }

  /// Writes a number into the section begun last. Requires that a section has begun.
  template <std::integral T>
  void put(T value) noexcept {
    REPRISE_EXPECTS(section_ != 0);
    store(position_, value);
    position_ += sizeof(T);
  }

  /// Ends the snapshot and returns its bytes, which are in the caller's memory. Error: out_of_room (`value`: the bytes
  /// needed).
  [[nodiscard]] Result<std::span<const std::byte>> finish() noexcept {
    end_section();
    for (std::size_t i = 0; i < detail::SnapshotFormat::magic.size(); ++i) store(i, detail::SnapshotFormat::magic[i]);
    store(8, detail::SnapshotFormat::byte_order);
    store(12, detail::SnapshotFormat::version);
    store(16, static_cast<std::uint32_t>(sizeof(Token)));
    store(20, static_cast<std::uint32_t>(sections_));
    store(24, tokenizer_);
    store(32, static_cast<std::uint64_t>(position_));
    store_checksum(40, 0, 40);
    if (position_ > room_.size())
      return Error{ErrorCode::out_of_room,
                   "the buffer is too small for the snapshot: provide as many bytes as the value of this error",
                   position_, room_.size()};
    return std::span<const std::byte>(room_.first(position_));
  }

 private:
  [[nodiscard]] bool has_begun(SectionKind kind) const noexcept {
    const auto end = kinds_.begin() + static_cast<std::ptrdiff_t>(sections_);
    return std::find(kinds_.begin(), end, kind) != end;
  }
  void end_section() noexcept {
    if (section_ == 0) return;
    const std::size_t contents = section_ + detail::SnapshotFormat::section_header_bytes;
    store(section_ + 4, static_cast<std::uint64_t>(position_ - contents));
    store_checksum(section_ + 12, contents, position_);
    store_checksum(section_ + 20, section_, section_ + 20);
    section_ = 0;
  }
  template <std::integral T>
  void store(std::size_t at, T value) noexcept {
    if (at <= room_.size() && room_.size() - at >= sizeof(T)) detail::store_little(value, room_.data() + at);
  }
  void store_checksum(std::size_t at, std::size_t begin, std::size_t end) noexcept {
    if (end <= room_.size()) store(at, detail::crc64(room_.subspan(begin, end - begin)));
  }

  std::span<std::byte> room_;
  std::uint64_t tokenizer_;
  std::size_t position_ = detail::SnapshotFormat::header_bytes;
  std::size_t section_ = 0;  // offset of the open section; 0: none is open
  std::size_t sections_ = 0;
  std::array<SectionKind, detail::SnapshotFormat::most_sections> kinds_{};  // the kinds of the sections begun
};

/// A snapshot in memory that has passed all checks. It refers to the bytes given to open(), which must not change.
///
/// Threads: any number may read.
class SnapshotReader {
 public:
  /// Reads numbers from a view of bytes, one after the other, and never beyond its end. A plain value: a copy continues
  /// from the same offset.
  class Cursor {
   public:
    constexpr explicit Cursor(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    [[nodiscard]] constexpr std::size_t offset() const noexcept { return offset_; }
    [[nodiscard]] constexpr std::size_t left() const noexcept { return bytes_.size() - offset_; }

    /// Returns the next number and advances. Returns nullopt and does not advance if too few bytes remain.
    template <std::integral T>
    [[nodiscard]] constexpr std::optional<T> take() noexcept {
      if (left() < sizeof(T)) return std::nullopt;
      const T value = detail::load_little<T>(bytes_.data() + offset_);
      offset_ += sizeof(T);
      return value;
    }
    [[nodiscard]] constexpr std::optional<std::span<const std::byte>> take_bytes(std::size_t count) noexcept {
      if (left() < count) return std::nullopt;
      offset_ += count;
      return bytes_.subspan(offset_ - count, count);
    }

   private:
    std::span<const std::byte> bytes_;
    std::size_t offset_ = 0;
  };

  /// Checks the bytes and returns a reader for them. `tokenizer`: the number that the snapshot must have. Errors:
  ///
  ///  * not_a_snapshot.
  ///  * other_byte_order (`value`: the order that was read, `limit`: the order expected).
  ///  * other_token_width (`value`: bytes per token in the snapshot, `limit`: bytes per token in this build).
  ///  * newer_version (`value`: the version of the snapshot, `limit`: the newest version that this build knows).
  ///  * other_tokenizer (`value`: the number in the snapshot, `limit`: the number expected).
  ///  * snapshot_truncated (`value`: the bytes given, `limit`: the bytes expected).
  ///  * snapshot_damaged and snapshot_forged (`value`: the offset of the header, the section or the surplus bytes;
  ///    `limit`: the section's kind, or 0). Forged bytes have correct checksums but break a rule that SnapshotWriter
  ///    never breaks.
  ///
  /// Cost: a pass over the bytes; no allocation.
  [[nodiscard]] static Result<SnapshotReader> open(std::span<const std::byte> bytes, std::uint64_t tokenizer) noexcept {
    using Format = detail::SnapshotFormat;
    for (std::size_t i = 0; i < std::min(bytes.size(), Format::magic.size()); ++i)
      if (std::to_integer<std::uint8_t>(bytes[i]) != Format::magic[i])
        return Error{ErrorCode::not_a_snapshot,
                     "this does not begin like a snapshot of reprise: give the bytes that SnapshotWriter made"};
    if (bytes.size() < Format::header_bytes) return truncated(bytes.size(), Format::header_bytes);
    Cursor header(bytes.subspan(Format::magic.size()));
    const auto order = *header.take<std::uint32_t>();
    // Checked before the checksum, whose bytes would be reversed too. No single wrong bit produces this value.
    if (order == 0x04030201)
      return Error{ErrorCode::other_byte_order,
                   "the snapshot has its highest bytes first: write it with SnapshotWriter, which never does", order,
                   Format::byte_order};
    if (detail::crc64(bytes.first(40)) != detail::load_little<std::uint64_t>(bytes.data() + 40))
      return Error{ErrorCode::snapshot_damaged,
                   "the header of the snapshot is damaged: take another copy of it, or begin without one"};
    const auto version = *header.take<std::uint32_t>();
    const auto width = *header.take<std::uint32_t>();
    const auto sections = *header.take<std::uint32_t>();
    const auto fingerprint = *header.take<std::uint64_t>();
    const auto size = *header.take<std::uint64_t>();
    if (order != Format::byte_order || version == 0)
      return Error{ErrorCode::snapshot_forged, "reprise never writes such a header: do not trust where it comes from"};
    if (version > Format::version)
      return Error{ErrorCode::newer_version,
                   "a newer version of reprise wrote this snapshot: update reprise, or begin without the snapshot",
                   version, Format::version};
    if (width != sizeof(Token))
      return Error{ErrorCode::other_token_width,
                   "the tokens of the snapshot have another width: it was made by a reprise with other tokens", width,
                   sizeof(Token)};
    if (fingerprint != tokenizer)
      return Error{ErrorCode::other_tokenizer,
                   "the snapshot was saved with another number, of another tokenizer or tenant: load the one that was "
                   "saved with this "
                   "number, or none",
                   fingerprint, tokenizer};
    if (bytes.size() < size) return truncated(bytes.size(), size);
    if (bytes.size() > size)
      return Error{ErrorCode::snapshot_damaged,
                   "bytes follow the end of the snapshot: pass only the bytes that were saved", size, 0};
    SnapshotReader reader(bytes, sections);
    if (const auto valid = reader.check_sections(); !valid) return valid.error();
    return reader;
  }

  /// Returns the contents of the section of this kind, or nullopt if the snapshot has none.
  [[nodiscard]] constexpr std::optional<Cursor> section(SectionKind kind) const noexcept {
    Cursor rest = after_header();
    for (std::size_t i = 0; i < sections_; ++i) {
      const Section section = *take_section(rest);
      const auto contents = *rest.take_bytes(static_cast<std::size_t>(section.length));
      if (section.kind == static_cast<std::uint32_t>(kind)) return Cursor(contents);
    }
    return std::nullopt;
  }

 private:
  struct Section {
    std::uint32_t kind = 0;
    std::uint64_t length = 0;
    std::uint64_t checksum = 0;
    std::uint64_t header_checksum = 0;
  };

  constexpr SnapshotReader(std::span<const std::byte> bytes, std::size_t sections) noexcept
      : bytes_(bytes), sections_(sections) {}

  static constexpr Error truncated(std::uint64_t size, std::uint64_t promised) noexcept {
    return {ErrorCode::snapshot_truncated,
            "the end of the snapshot is missing: take another copy of it, or begin without one", size, promised};
  }
  [[nodiscard]] constexpr Cursor after_header() const noexcept {
    return Cursor(bytes_.subspan(detail::SnapshotFormat::header_bytes));
  }
  static constexpr std::optional<Section> take_section(Cursor& rest) noexcept {
    if (rest.left() < detail::SnapshotFormat::section_header_bytes) return std::nullopt;
    // Reads the fields in the order in which they are stored: initialisers in braces are evaluated from left to right.
    return Section{*rest.take<std::uint32_t>(), *rest.take<std::uint64_t>(), *rest.take<std::uint64_t>(),
                   *rest.take<std::uint64_t>()};
  }

  [[nodiscard]] Result<void> check_sections() const noexcept {
    const auto damaged = [](std::size_t at, std::uint32_t kind) {
      return Error{ErrorCode::snapshot_damaged,
                   "a section of the snapshot is damaged: take another copy of it, or begin without one", at, kind};
    };
    const auto forged = [](std::size_t at, std::uint32_t kind) {
      return Error{ErrorCode::snapshot_forged,
                   "the sections of the snapshot break the rules of the format, though the checksums are right: "
                   "do not trust where it comes from",
                   at, kind};
    };
    if (sections_ > detail::SnapshotFormat::most_sections) return forged(0, 0);
    std::array<std::uint32_t, detail::SnapshotFormat::most_sections> kinds{};
    Cursor rest = after_header();
    for (std::size_t i = 0; i < sections_; ++i) {
      const std::size_t at = detail::SnapshotFormat::header_bytes + rest.offset();
      const auto section = take_section(rest);
      if (!section) return forged(at, 0);
      if (detail::crc64(bytes_.subspan(at, 20)) != section->header_checksum) return damaged(at, section->kind);
      const auto end = kinds.begin() + static_cast<std::ptrdiff_t>(i);
      if (section->length > rest.left() || std::find(kinds.begin(), end, section->kind) != end)
        return forged(at, section->kind);
      const auto contents = *rest.take_bytes(static_cast<std::size_t>(section->length));
      if (detail::crc64(contents) != section->checksum) return damaged(at, section->kind);
      kinds[i] = section->kind;
    }
    if (rest.left() != 0) return forged(detail::SnapshotFormat::header_bytes + rest.offset(), 0);
    return {};
  }

  std::span<const std::byte> bytes_;
  std::size_t sections_;
};

}}  // namespace reprise
