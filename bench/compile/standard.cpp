// SPDX-License-Identifier: Apache-2.0
// Headers that every file of an engine includes anyway: the measure of the others.
#include <algorithm>
#include <span>
#include <string>
#include <vector>
