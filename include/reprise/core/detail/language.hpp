// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Stops the compiler with one message if the language is older than C++20. Without it, one include gives
/// thousands of lines of errors. Headers that include no other header of the library include this one.

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error reprise needs C++20: compile with -std=c++20 (/std:c++20)
#include <reprise needs C++20>  // a missing file stops compilers that go on after #error
#endif
