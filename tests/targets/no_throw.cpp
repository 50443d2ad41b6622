// SPDX-License-Identifier: Apache-2.0
// Stands in for the functions that `throw` and `catch` call, where the C++ library has no exceptions, so that the tests
// can be linked. A program that throws is ended.
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
