// SPDX-License-Identifier: Apache-2.0
// The umbrella alone: the price of an #include in each further file.
#include "reprise/reprise.hpp"
