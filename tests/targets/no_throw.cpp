// SPDX-License-Identifier: Apache-2.0
// The functions behind `throw` and `catch` for a C++ library without exceptions, so that programs that throw can be
// linked. A program that does throw is ended.
#include <cstddef>
#include <cstdlib>

extern "C" {
void* __cxa_allocate_exception(std::size_t) { std::abort(); }
void __cxa_free_exception(void*) { std::abort(); }
[[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) { std::abort(); }
[[noreturn]] void __cxa_rethrow() { std::abort(); }
void* __cxa_begin_catch(void*) { std::abort(); }
void __cxa_end_catch() { std::abort(); }
void* __cxa_get_exception_ptr(void*) { std::abort(); }
}
