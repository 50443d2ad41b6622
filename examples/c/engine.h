/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A toy engine in C, with the parts of a real one that matter to drafts: passes of several rows, a cache with one entry
 * per row, and a rollback. The next token is computed from the entries that a row attends to. So an entry that a
 * rollback leaves in the wrong place changes the text.
 */
#ifndef REPRISE_EXAMPLE_ENGINE_H
#define REPRISE_EXAMPLE_ENGINE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_CONTEXT = 1024, MAX_ROWS = 64, VOCABULARY = 8 };

typedef struct engine {
  int32_t cache[MAX_CONTEXT + MAX_ROWS]; /* what a row has left for later rows; here, its token */
  size_t cached;                         /* entries of committed tokens */
  size_t passes;
} engine;

/* Returns the token after a path that ends with the tokens c, b, a. Such a text repeats itself soon. At every seventh
 * position, there is one of two tokens. */
static int32_t next_token(int32_t a, int32_t b, int32_t c, size_t position) {
  uint32_t hash = (uint32_t)a * 2654435761u ^ (uint32_t)b * 2246822519u ^ (uint32_t)c * 3266489917u;
  if (position % 7 == 0) hash ^= (uint32_t)(position * position) >> 3 & 1;
  hash = (hash ^ hash >> 15) * 2246822519u;
  return (int32_t)((hash >> 12) % VOCABULARY);
}

/* Runs one pass: `pending` committed tokens, then `drafted` tokens. Drafted row i follows drafted row parents[i], or
 * the last pending row if that is -1. Null parents: a chain. Writes the token after the last pending row to picks[0],
 * and the token after drafted row i to picks[i + 1]. */
static void engine_pass(engine* e, const int32_t* batch, size_t pending, size_t drafted, const int32_t* parents,
                        int32_t* picks) {
  size_t rows = pending + drafted;
  size_t i;
  assert(pending >= 1 && rows <= MAX_ROWS && e->cached + rows <= MAX_CONTEXT + MAX_ROWS);
  memcpy(e->cache + e->cached, batch, rows * sizeof *batch);
  for (i = 0; i <= drafted; ++i) {
    /* The row attends to its ancestors: drafted rows, then everything before them. */
    int32_t last[3] = {0, 0, 0};
    size_t depth = 0;
    size_t seen = 0;
    ptrdiff_t row = (ptrdiff_t)i - 1; /* a drafted row; -1 and below: rows before the draft, backwards */
    ptrdiff_t before = (ptrdiff_t)(e->cached + pending);
    while (seen < 3 && before + row >= 0) {
      last[seen++] = e->cache[before + row];
      row = row >= 0 && parents != NULL ? parents[row] : row - 1;
    }
    for (row = (ptrdiff_t)i - 1; row >= 0; row = parents != NULL ? parents[row] : row - 1) ++depth;
    picks[i] = next_token(last[0], last[1], last[2], (size_t)before + depth);
  }
  ++e->passes;
}

/* Keeps these rows of the last pass, and removes the others. */
static void engine_keep(engine* e, const size_t* rows, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) e->cache[e->cached + i] = e->cache[e->cached + rows[i]];
  e->cached += count;
}

/* Runs tokens whose next tokens are not needed. */
static void engine_prefill(engine* e, const int32_t* tokens, size_t count) {
  memcpy(e->cache + e->cached, tokens, count * sizeof *tokens);
  e->cached += count;
}

#endif
