// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The one macro of the library: a precondition that only a programming error of the caller can break.
///
/// Input that arrives at run time (token values, sizes, a strategy's proposals, files, capabilities) is never checked
/// here: such input is handled, or refused with a value (result.hpp). Choose with -DREPRISE_CONTRACTS=...:
///   0  off (the default): no code
///   1  assert(): follows NDEBUG
///   2  abort(): stays in release builds
/// Every translation unit of a program must use the same setting.

#if !defined(REPRISE_CONTRACTS)
#define REPRISE_CONTRACTS 0
#endif

#if REPRISE_CONTRACTS == 1
#include <cassert>
#define REPRISE_EXPECTS(condition) assert(condition)
#elif REPRISE_CONTRACTS == 2
#include <cstdlib>
#define REPRISE_EXPECTS(condition) ((condition) ? static_cast<void>(0) : std::abort())
#else
#define REPRISE_EXPECTS(condition) static_cast<void>(0)
#endif
