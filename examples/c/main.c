/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes a text with a toy engine in C: without drafts, with a follower, with a session, and with a session that
 * drafts trees. Prints the passes of each, and checks that the text is always the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "reprise_c/reprise.h"

enum { PROMPT = 24, OUTPUT = 500, LENGTH = PROMPT + OUTPUT };

static int stop(const char* what, const reprise_error* error) {
  fprintf(stderr, "%s: %s\n", what, error->message);
  return 1;
}

/* The engine alone. */
static void decode_plain(int32_t* ids, size_t* passes) {
  engine e = {.cached = 0};
  size_t count;
  engine_prefill(&e, ids, PROMPT - 1);
  for (count = PROMPT; count < LENGTH; ++count) {
    const size_t kept[1] = {0};
    engine_pass(&e, ids + count - 1, 1, 0, NULL, ids + count);
    engine_keep(&e, kept, 1);
  }
  *passes = e.passes;
}

/* The engine owns the loop: it asks for a draft, and accepts and rolls back by itself. */
static int decode_with_follower(const reprise_options* options, int32_t* ids, size_t* passes) {
  engine e = {.cached = 0};
  reprise_follower* follower;
  reprise_error error;
  size_t count = PROMPT;
  if (reprise_follower_create(options, &follower, &error) != REPRISE_OK) return stop("follower", &error);
  engine_prefill(&e, ids, PROMPT - 1);
  while (count < LENGTH) {
    int32_t batch[MAX_ROWS];
    int32_t picks[MAX_ROWS];
    size_t rows[MAX_ROWS];
    const reprise_token* draft;
    size_t drafted;
    size_t accepted = 0;
    size_t i;
    if (reprise_follower_draft(follower, ids, count, LENGTH - count - 1, 0, 0, &draft, &drafted) != REPRISE_OK)
      return stop("draft", reprise_follower_error(follower));
    batch[0] = ids[count - 1];
    for (i = 0; i < drafted; ++i) batch[i + 1] = draft[i];
    engine_pass(&e, batch, 1, drafted, NULL, picks);
    while (accepted < drafted && picks[accepted] == draft[accepted]) ++accepted;
    for (i = 0; i <= accepted; ++i) {
      ids[count++] = picks[i];
      rows[i] = i;
    }
    engine_keep(&e, rows, accepted + 1);
  }
  *passes = e.passes;
  reprise_follower_destroy(follower);
  return 0;
}

/* The session says which batch to run, and which rows to keep. */
static int decode_with_session(const reprise_options* options, size_t max_leaves, int32_t* ids, size_t* passes) {
  const reprise_capabilities can = {.size = sizeof can, .max_leaves = max_leaves};
  const reprise_limits limits = {.size = sizeof limits, .max_tokens = OUTPUT};
  reprise_state state = {.size = sizeof state};
  engine e = {.cached = 0};
  reprise_session* session;
  reprise_error error;
  if (reprise_session_create(options, &session, &error) != REPRISE_OK) return stop("session", &error);
  engine_prefill(&e, ids, PROMPT - 1);
  if (reprise_session_begin(session, ids, PROMPT, REPRISE_UNLIMITED, &can) != REPRISE_OK)
    return stop("begin", reprise_session_error(session));
  do {
    reprise_pass pass = {.size = sizeof pass};
    reprise_commit commit = {.size = sizeof commit};
    int32_t picks[MAX_ROWS];
    if (reprise_session_plan(session, &limits, REPRISE_UNLIMITED, &pass) != REPRISE_OK)
      return stop("plan", reprise_session_error(session));
    engine_pass(&e, pass.batch, pass.pending, pass.drafted, pass.parents, picks);
    if (reprise_session_commit(session, picks, pass.drafted + 1, 0, &commit) != REPRISE_OK)
      return stop("commit", reprise_session_error(session));
    engine_keep(&e, commit.rows, commit.keep);
    if (reprise_session_state(session, &state) != REPRISE_OK) return stop("state", reprise_session_error(session));
  } while (state.finish == REPRISE_FINISH_NONE);
  memcpy(ids, state.context, state.context_count * sizeof *ids);
  *passes = e.passes;
  reprise_session_destroy(session);
  return 0;
}

static int report(const char* name, const int32_t* ids, const int32_t* plain, size_t passes) {
  const int same = memcmp(ids, plain, LENGTH * sizeof *ids) == 0;
  printf("%-16s %4lu passes, %s text\n", name, (unsigned long)passes, same ? "same" : "ANOTHER");
  return same && passes < OUTPUT / 2 ? 0 : 1;
}

int main(void) {
  reprise_curve* curve;
  reprise_error error;
  reprise_options options = {.size = sizeof options};
  int32_t plain[LENGTH];
  int32_t ids[LENGTH];
  size_t passes;
  size_t i;
  int failed = 0;
  for (i = 0; i < PROMPT; ++i) ids[i] = plain[i] = (int32_t)(i * 7 % VOCABULARY);
  printf("reprise %s, %d tokens\n", reprise_version(), (int)OUTPUT);
  decode_plain(plain, &passes);
  printf("%-16s %4lu passes\n", "plain", (unsigned long)passes);

  /* A drafted row of this engine costs 5% of a pass. Without a curve, pass the time of each pass instead. */
  if (reprise_curve_create_linear(0.05, &curve, &error) != REPRISE_OK) return stop("curve", &error);
  options.curve = curve;
  if (decode_with_follower(&options, ids, &passes) != 0) return 1;
  failed |= report("follower", ids, plain, passes);
  if (decode_with_session(&options, 1, ids, &passes) != 0) return 1;
  failed |= report("session", ids, plain, passes);
  if (decode_with_session(&options, REPRISE_UNLIMITED, ids, &passes) != 0) return 1;
  failed |= report("session, trees", ids, plain, passes);
  reprise_curve_destroy(curve);
  return failed;
}
