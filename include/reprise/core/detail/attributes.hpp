// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Attributes that not every compiler knows.
///
/// REPRISE_LIFETIMEBOUND marks a function whose result refers to the object, or to the marked parameter. Clang and MSVC
/// then warn of a view that outlives it, as in `return generate(speculator, ...)` with a local speculator.
///
/// REPRISE_COLD marks a function that seldom runs. GCC and Clang compile it for size, and keep it out of its callers.

#if !defined(REPRISE_LIFETIMEBOUND) && defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define REPRISE_LIFETIMEBOUND [[clang::lifetimebound]]
#elif __has_cpp_attribute(msvc::lifetimebound)
#define REPRISE_LIFETIMEBOUND [[msvc::lifetimebound]]
#endif
#endif

#if !defined(REPRISE_LIFETIMEBOUND)
#define REPRISE_LIFETIMEBOUND
#endif

#if defined(__GNUC__)
#define REPRISE_COLD [[gnu::cold]]
#else
#define REPRISE_COLD
#endif
