// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/contract.hpp"
#include "reprise/core/result.hpp"
#include "reprise/memory/little_endian.hpp"
#include "reprise/memory/snapshot.hpp"

namespace reprise {

/// How a remembered token is written: the token, 0 ... 2^31 - 2, and who said it.
struct PieceWord {
  static constexpr std::uint32_t output = std::uint32_t{1} << 31;  ///< the model said it (Origin::output)
  static constexpr std::uint32_t token = output - 1;               ///< the bits of the token; never all of them
};

/// Tokens that share a credit.
inline constexpr std::size_t tokens_per_credit = 32;

/// The bytes of a piece of `tokens` tokens in a section of kind `pieces`.
constexpr std::size_t piece_bytes(std::size_t tokens) noexcept {
  return sizeof(std::uint64_t) + sizeof(std::uint32_t) + tokens * sizeof(std::uint32_t) +
         (tokens + tokens_per_credit - 1) / tokens_per_credit;
}

/// A piece of remembered text: the name of its sequence, its words, and the credit of each begun 32 of them: how much
/// they were of use. Words are asked for one after the other, each once, before the credits.
template <class P>
concept PieceSource = requires(P& piece, std::size_t i) {
  { piece.sequence() } -> std::convertible_to<std::uint64_t>;
  { piece.size() } -> std::convertible_to<std::size_t>;      // tokens: 1 ... 2^32 - 1
  { piece.word(i) } -> std::convertible_to<std::uint32_t>;   // of token i, see PieceWord
  { piece.credit(i) } -> std::convertible_to<std::uint8_t>;  // of the tokens from 32 * i on
};

/// A piece that lies in a snapshot; refers to its bytes.
class PieceView {
 public:
  [[nodiscard]] constexpr std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return words_.size() / sizeof(std::uint32_t); }
  [[nodiscard]] constexpr std::uint32_t word(std::size_t i) const noexcept {
    REPRISE_EXPECTS(i < size());
    return detail::load_little<std::uint32_t>(words_.data() + i * sizeof(std::uint32_t));
  }
  [[nodiscard]] constexpr std::uint8_t credit(std::size_t i) const noexcept {
    REPRISE_EXPECTS(i < credits_.size());
    return std::to_integer<std::uint8_t>(credits_[i]);
  }

 private:
  template <class Visit>
  friend Result<void> for_each_piece(SnapshotCursor section, Visit visit) noexcept;
  constexpr PieceView(std::uint64_t sequence, std::span<const std::byte> words,
                      std::span<const std::byte> credits) noexcept
      : sequence_(sequence), words_(words), credits_(credits) {}

  std::uint64_t sequence_;
  std::span<const std::byte> words_;
  std::span<const std::byte> credits_;
};
static_assert(PieceSource<PieceView>);

/// Writes a piece into the section that was begun last, of kind `pieces`: piece_bytes().
template <PieceSource P>
void write_piece(SnapshotWriter& writer, P&& piece) noexcept {
  const std::size_t size = piece.size();
  REPRISE_EXPECTS(size != 0 && size <= UINT32_MAX);
  writer.put(static_cast<std::uint64_t>(piece.sequence()));
  writer.put(static_cast<std::uint32_t>(size));
  for (std::size_t i = 0; i < size; ++i) writer.put(static_cast<std::uint32_t>(piece.word(i)));
  for (std::size_t i = 0; i * tokens_per_credit < size; ++i) writer.put(static_cast<std::uint8_t>(piece.credit(i)));
}

/// Calls visit(PieceView) for the pieces of a section of kind `pieces`, in their order. snapshot_forged: one of them
/// has no tokens or more than there are bytes, or a word that holds none (`value`: where in the section it begins); it
/// is not visited, nor is what follows. Who wants all or nothing asks twice.
///
/// Cost: a pass over the words beside that of the visits; no allocation.
template <class Visit>
[[nodiscard]] Result<void> for_each_piece(SnapshotCursor section, Visit visit) noexcept {
  while (section.left() != 0) {
    const Error forged = {ErrorCode::snapshot_forged,
                          "a piece of the snapshot breaks the rules of the format, though its checksum is right: do "
                          "not trust where it comes from",
                          section.offset(), static_cast<std::uint64_t>(SectionKind::pieces)};
    const auto sequence = section.take<std::uint64_t>();
    const auto size = section.take<std::uint32_t>();
    if (!sequence || !size || *size == 0 || *size > section.left() / sizeof(std::uint32_t)) return forged;
    const auto words = section.take_bytes(*size * sizeof(std::uint32_t));
    const auto credits = section.take_bytes((std::size_t{*size} + tokens_per_credit - 1) / tokens_per_credit);
    if (!words || !credits) return forged;
    const PieceView piece(*sequence, *words, *credits);
    for (std::size_t i = 0; i < piece.size(); ++i)
      if ((piece.word(i) & PieceWord::token) == PieceWord::token) return forged;
    visit(piece);
  }
  return {};
}

}  // namespace reprise
