// SPDX-License-Identifier: Apache-2.0
// A compiler whose default is older than C++20 says so, and nothing else.
// message: reprise needs C\+\+20: compile with -std=c\+\+20.*(terminated|2 errors generated|C1083)
#include "reprise/reprise.hpp"
