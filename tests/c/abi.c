/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the layout of every struct of the C interface, and the value of every constant. abi.cmake compares them with
 * abi.txt. */
#include <stddef.h>
#include <stdio.h>

#include "reprise_c/reprise.h"

#define STRUCT(name) printf("struct %s %lu\n", #name, (unsigned long)sizeof(name))
#define MEMBER(name, member) \
  printf("  %s %lu %lu\n", #member, (unsigned long)offsetof(name, member), (unsigned long)sizeof(((name*)0)->member))
#define CONSTANT(name) printf("constant %s %ld\n", #name, (long)name)

static void print_constants(void) {
  CONSTANT(REPRISE_OK);
  CONSTANT(REPRISE_EMPTY_CONTEXT);
  CONSTANT(REPRISE_CONTEXT_TOO_LONG);
  CONSTANT(REPRISE_CACHED_OUT_OF_RANGE);
  CONSTANT(REPRISE_TOO_MANY_PENDING);
  CONSTANT(REPRISE_SIZE_OUT_OF_RANGE);
  CONSTANT(REPRISE_INVALID_ARGUMENT);
  CONSTANT(REPRISE_OUT_OF_MEMORY);
  CONSTANT(REPRISE_NOT_BEGUN);
  CONSTANT(REPRISE_NOT_PLANNED);
  CONSTANT(REPRISE_FINISHED);
  CONSTANT(REPRISE_BAD_PICKS);
  CONSTANT(REPRISE_OUT_OF_ROOM);
  CONSTANT(REPRISE_BAD_SNAPSHOT);
  CONSTANT(REPRISE_TOKEN_OUT_OF_RANGE);
  CONSTANT(REPRISE_INTERNAL);
  CONSTANT(REPRISE_MEMORY_NO_TEXT);
  CONSTANT(REPRISE_MEMORY_NO_PROMPTS);
  CONSTANT(REPRISE_MEMORY_NO_OUTPUTS);
  CONSTANT(REPRISE_MEMORY_NO_NEXT_TOKENS);
  CONSTANT(REPRISE_MEMORY_SEPARATE_CALIBRATION);
  CONSTANT(REPRISE_ROW_GOES_ON);
  CONSTANT(REPRISE_ROW_BEGINS);
  CONSTANT(REPRISE_ROW_WAITS);
  CONSTANT(REPRISE_ROLLBACK_TRIM);
  CONSTANT(REPRISE_ROLLBACK_SNAPSHOT);
  CONSTANT(REPRISE_ROLLBACK_PER_ROW);
  CONSTANT(REPRISE_FINISH_NONE);
  CONSTANT(REPRISE_FINISH_EOS);
  CONSTANT(REPRISE_FINISH_MAX_TOKENS);
  CONSTANT(REPRISE_FINISH_CONTEXT_FULL);
}

static void print_options(void) {
  STRUCT(reprise_error);
  MEMBER(reprise_error, status);
  MEMBER(reprise_error, message);
  MEMBER(reprise_error, value);
  MEMBER(reprise_error, limit);
  STRUCT(reprise_cost_point);
  MEMBER(reprise_cost_point, sequences);
  MEMBER(reprise_cost_point, context);
  MEMBER(reprise_cost_point, rows);
  MEMBER(reprise_cost_point, nanoseconds);
  STRUCT(reprise_memory_options);
  MEMBER(reprise_memory_options, size);
  MEMBER(reprise_memory_options, max_bytes);
  MEMBER(reprise_memory_options, next_token_bytes);
  MEMBER(reprise_memory_options, salts);
  MEMBER(reprise_memory_options, key);
  MEMBER(reprise_memory_options, vocabulary);
  MEMBER(reprise_memory_options, flags);
  STRUCT(reprise_options);
  MEMBER(reprise_options, size);
  MEMBER(reprise_options, curve);
  MEMBER(reprise_options, memory);
  MEMBER(reprise_options, max_draft_nodes);
  MEMBER(reprise_options, max_bytes);
  MEMBER(reprise_options, key);
  MEMBER(reprise_options, saved_costs);
  MEMBER(reprise_options, saved_costs_size);
  MEMBER(reprise_options, engine);
  MEMBER(reprise_options, vocabulary);
  MEMBER(reprise_options, salt);
}

static void print_rounds(void) {
  STRUCT(reprise_slot);
  MEMBER(reprise_slot, slot);
  MEMBER(reprise_slot, ids);
  MEMBER(reprise_slot, count);
  MEMBER(reprise_slot, most);
  MEMBER(reprise_slot, conversation);
  MEMBER(reprise_slot, draft);
  MEMBER(reprise_slot, drafted);
  MEMBER(reprise_slot, after);
  STRUCT(reprise_row);
  MEMBER(reprise_row, slot);
  MEMBER(reprise_row, at);
  MEMBER(reprise_row, most);
  MEMBER(reprise_row, kind);
  MEMBER(reprise_row, options);
  MEMBER(reprise_row, prediction);
  MEMBER(reprise_row, predicted);
  MEMBER(reprise_row, prompt);
  MEMBER(reprise_row, drafted);
  STRUCT(reprise_step);
  MEMBER(reprise_step, size);
  MEMBER(reprise_step, batch);
  MEMBER(reprise_step, ids);
  MEMBER(reprise_step, stride);
  MEMBER(reprise_step, below);
  MEMBER(reprise_step, longest);
  MEMBER(reprise_step, lengths);
  MEMBER(reprise_step, rows);
  MEMBER(reprise_step, count);
  MEMBER(reprise_step, ended);
  MEMBER(reprise_step, drafts);
  MEMBER(reprise_step, width);
  MEMBER(reprise_step, now_ns);
  MEMBER(reprise_step, status);
  MEMBER(reprise_step, done);
  STRUCT(reprise_capabilities);
  MEMBER(reprise_capabilities, size);
  MEMBER(reprise_capabilities, max_rows);
  MEMBER(reprise_capabilities, max_context);
  MEMBER(reprise_capabilities, max_depth);
  MEMBER(reprise_capabilities, max_leaves);
  MEMBER(reprise_capabilities, max_rollback);
  MEMBER(reprise_capabilities, widths);
  MEMBER(reprise_capabilities, width_count);
  MEMBER(reprise_capabilities, rollback);
  MEMBER(reprise_capabilities, has_pad_token);
  MEMBER(reprise_capabilities, pad_token);
  STRUCT(reprise_limits);
  MEMBER(reprise_limits, size);
  MEMBER(reprise_limits, max_tokens);
  MEMBER(reprise_limits, max_context);
  MEMBER(reprise_limits, eos);
  MEMBER(reprise_limits, eos_count);
  STRUCT(reprise_pass);
  MEMBER(reprise_pass, size);
  MEMBER(reprise_pass, batch);
  MEMBER(reprise_pass, rows);
  MEMBER(reprise_pass, pending);
  MEMBER(reprise_pass, drafted);
  MEMBER(reprise_pass, parents);
  MEMBER(reprise_pass, depths);
  STRUCT(reprise_commit);
  MEMBER(reprise_commit, size);
  MEMBER(reprise_commit, tokens);
  MEMBER(reprise_commit, count);
  MEMBER(reprise_commit, rows);
  MEMBER(reprise_commit, keep);
  MEMBER(reprise_commit, accepted);
  MEMBER(reprise_commit, restore);
  MEMBER(reprise_commit, finish);
  STRUCT(reprise_state);
  MEMBER(reprise_state, size);
  MEMBER(reprise_state, context);
  MEMBER(reprise_state, context_count);
  MEMBER(reprise_state, output);
  MEMBER(reprise_state, output_count);
  MEMBER(reprise_state, cached);
  MEMBER(reprise_state, top_k_wanted);
  MEMBER(reprise_state, memory_bytes);
  MEMBER(reprise_state, finish);
}

int main(void) {
  print_constants();
  print_options();
  print_rounds();
  return 0;
}
