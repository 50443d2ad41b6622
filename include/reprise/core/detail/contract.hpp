// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file REPRISE_EXPECTS, the only function-like macro of the library: a precondition that only a programming error of
/// the caller can break.
///
/// It never checks input that arrives at run time: token values, sizes, a strategy's proposals, files, capabilities.
/// The library handles such input, or refuses it with an Error (result.hpp). Set -DREPRISE_CONTRACTS to one of:
///
///   * 0: off, the default; generates no code.
///   * 1: assert(), which NDEBUG disables.
///   * 2: abort(), even in release builds.
///
/// Every translation unit of a program must use the same setting.

// One message, first of all. Without it, an older language gives thousands of lines of errors. So headers that include
// no other header of the library include this one.
#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error reprise needs C++20: compile with -std=c++20 (/std:c++20)
#include <reprise needs C++20>  // a missing file stops compilers that go on after #error
#endif

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
