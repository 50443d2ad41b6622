/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in C that owns its loop: up to 16 slots share each pass. Prompts arrive in the middle, and requests end, are
 * cancelled, and go on in other slots. The server tells the batch nothing but token ids, times and rows. Checks that
 * each text is that of plain decoding.
 */
#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "reprise_c/reprise.h"

enum { SLOTS = 16, REQUESTS = 24, PROMPT = 24, LONGEST = 400 };

/* A request, with its part of the engine's cache. In an empty slot, `length` is 0. */
typedef struct request {
  engine cache;
  size_t name;
  size_t length; /* tokens in total */
  size_t count;  /* committed tokens */
  int32_t ids[LONGEST];
} request;

static void begin(request* r, size_t name) {
  r->name = name;
  r->length = 200 + 40 * (name % 5);
  for (r->count = 0; r->count < PROMPT; ++r->count) r->ids[r->count] = (int32_t)((name + 1) * r->count % VOCABULARY);
  r->cache.cached = 0;
  engine_prefill(&r->cache, r->ids, PROMPT - 1);
}

/* Returns 1 if the text is that of plain decoding. */
static int is_plain(const request* r) {
  const size_t kept[1] = {0};
  request plain = {.count = 0};
  begin(&plain, r->name);
  for (; plain.count < r->count; ++plain.count) {
    engine_pass(&plain.cache, plain.ids + plain.count - 1, 1, 0, NULL, plain.ids + plain.count);
    engine_keep(&plain.cache, kept, 1);
  }
  return memcmp(plain.ids, r->ids, r->count * sizeof *r->ids) == 0;
}

typedef struct server {
  reprise_batch* batch;
  size_t slots;
  size_t arrived;
  size_t passes;
  size_t rows;
  int64_t now; /* nanoseconds */
  int same;    /* 1: each text is that of plain decoding */
  request requests[SLOTS];
} server;

static void end(server* s, request* r) {
  s->same = s->same && is_plain(r);
  r->length = 0;
}

/* Lets requests begin, cancels some, and moves some. Returns the rows of new prompts. */
static size_t change_requests(server* s) {
  size_t rows = 0;
  size_t i;
  for (i = 0; i < s->slots && s->arrived < REQUESTS; ++i) {
    if (s->requests[i].length != 0) continue;
    begin(&s->requests[i], s->arrived++);
    rows += PROMPT - 1;
    if (s->passes % 7 != 0) break; /* not all at once */
  }
  for (i = 0; i < s->slots; ++i) {
    request* const r = &s->requests[i];
    if (r->length != 0 && r->name % 4 == 3 && r->count > 100) end(s, r); /* cancelled */
  }
  if (s->passes % 40 == 39) {
    const request moved = s->requests[0];
    s->requests[0] = s->requests[s->slots - 1];
    s->requests[s->slots - 1] = moved;
  }
  return rows;
}

/* The engine's part of a slot: it verifies the draft, appends what it accepts and its own next token, and keeps only
 * the rows of accepted tokens. */
static void run_slot(server* s, const reprise_slot* slot) {
  request* const r = &s->requests[slot->slot];
  int32_t batch[MAX_ROWS], picks[MAX_ROWS];
  size_t rows[MAX_ROWS], accepted = 0, i;
  batch[0] = r->ids[r->count - 1];
  for (i = 0; i < slot->drafted; ++i) batch[i + 1] = slot->draft[i];
  engine_pass(&r->cache, batch, 1, slot->drafted, NULL, picks);
  while (accepted < slot->drafted && picks[accepted] == slot->draft[accepted]) ++accepted;
  for (i = 0; i <= accepted; ++i) {
    r->ids[r->count++] = picks[i];
    rows[i] = i;
  }
  engine_keep(&r->cache, rows, accepted + 1);
  if (r->count == r->length) end(s, r);
}

/* Serves all requests. Returns 0 after an error of the library. */
static int serve(server* s) {
  for (;;) {
    reprise_slot slots[SLOTS];
    size_t rows = change_requests(s);
    size_t count = 0;
    size_t i;
    for (i = 0; i < s->slots; ++i) {
      const request* const r = &s->requests[i];
      const reprise_slot slot = {.slot = i, .ids = r->ids, .count = r->count, .most = r->length - r->count - 1};
      if (r->length != 0) slots[count++] = slot;
    }
    if (count == 0 && s->arrived == REQUESTS) return 1;
    if (reprise_batch_draft(s->batch, slots, count, s->now) != REPRISE_OK) return 0;
    /* One pass: the last token and the draft of each slot, and the prompts that have just arrived. */
    for (i = 0; i < count; ++i) {
      rows += 1 + slots[i].drafted;
      run_slot(s, &slots[i]);
    }
    if (reprise_batch_ran(s->batch, rows) != REPRISE_OK) return 0;
    s->now += 10000000 + 50000 * (int64_t)rows;
    s->rows += rows;
    ++s->passes;
  }
}

int main(void) {
  static const size_t sizes[] = {1, 4, SLOTS};
  size_t i;
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    server s = {.slots = sizes[i], .now = 1, .same = 1};
    reprise_error error;
    if (reprise_batch_create(NULL, s.slots, &s.batch, &error) != REPRISE_OK) return puts(error.message), 1;
    if (!serve(&s)) return puts(reprise_batch_error(s.batch)->message), 1;
    printf("%2lu slots: %4lu passes, %.1f rows each, %s texts\n", (unsigned long)s.slots, (unsigned long)s.passes,
           (double)s.rows / (double)s.passes, s.same ? "the same" : "OTHER");
    reprise_batch_destroy(s.batch);
    if (!s.same) return 1;
  }
  return 0;
}
