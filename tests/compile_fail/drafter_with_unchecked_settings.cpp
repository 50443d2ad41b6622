// SPDX-License-Identifier: Apache-2.0
// message: private
#include "reprise/draft/prompt_lookup_drafter.hpp"

reprise::PromptLookupDrafter<> drafter(reprise::presets::vllm());
