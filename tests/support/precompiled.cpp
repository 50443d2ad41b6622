// SPDX-License-Identifier: Apache-2.0
// Empty: CMake makes a precompiled header only for a target with a source file. See tests/CMakeLists.txt.
