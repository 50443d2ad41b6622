/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of reprise: drafts for speculative decoding, for engines in C and for languages that call C. It needs
 * C99 and no C++ header. One C++ file implements it (reprise.cpp in this folder); CMake builds it as reprise::c.
 *
 * Handles. Every object is an opaque handle with a create and a destroy function. A null handle is refused with
 * REPRISE_INVALID_ARGUMENT, and a destroy function ignores it.
 *
 * Structs. If a struct has the member `size`, the caller sets it to the sizeof of the struct, so that later versions
 * can add members at the end. In such a struct that the library reads, a member that is 0 has its default value. Of one
 * that the library writes, it writes the first `size` bytes, except `size`. A struct that is smaller than in the first
 * version is refused. A larger struct is accepted; the library neither reads nor writes the members that it does not
 * know. Structs in arrays have no `size` and never change.
 *
 * Arrays. An array that the library returns is valid until the next call with the same handle. An array that the caller
 * passes is read during the call only. A null array is allowed if its count is 0.
 *
 * Errors. A function that can fail returns a reprise_status. After an error, the handle is as before the call, unless
 * the function says otherwise; the outputs are 0. The _error function of the handle describes the last error. That of a
 * null handle describes REPRISE_INVALID_ARGUMENT.
 *
 * Threads. A handle may be used by one thread at a time; different handles are independent. Followers,
 * batches and sessions that have one memory are independent, too: they may be created and used by any threads at the
 * same time, also while another thread uses the handle of the memory. Creating one of them counts as a use of the
 * curve.
 *
 * There are no callbacks, no global variables, no threads and no exceptions. Only reprise_batch_step() can read a
 * clock.
 */
#ifndef REPRISE_C_REPRISE_H
#define REPRISE_C_REPRISE_H

/* NOLINTBEGIN: the rules of the linter are for C++ */
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(REPRISE_C_SHARED)
#ifdef REPRISE_C_BUILDING
#define REPRISE_API __declspec(dllexport)
#else
#define REPRISE_API __declspec(dllimport)
#endif
#elif defined(__GNUC__) && defined(REPRISE_C_BUILDING)
#define REPRISE_API __attribute__((visibility("default")))
#else
#define REPRISE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t reprise_token;

typedef struct reprise_curve reprise_curve;       /* costs of passes that the caller knows */
typedef struct reprise_memory reprise_memory;     /* what an engine keeps between requests */
typedef struct reprise_follower reprise_follower; /* drafts for an engine that hands over token ids only */
typedef struct reprise_batch reprise_batch;       /* the same for an engine that runs several sequences in each pass */
typedef struct reprise_session reprise_session;   /* drafts for an engine that reports its passes */

/* Any number of tokens, rows or bytes. */
#define REPRISE_UNLIMITED SIZE_MAX

/* Status codes. Later versions may add codes, but never change one. */
typedef int32_t reprise_status;
enum {
  REPRISE_OK = 0,
  REPRISE_EMPTY_CONTEXT = 1,       /* no tokens: at least one is needed */
  REPRISE_CONTEXT_TOO_LONG = 2,    /* more tokens than reprise_capabilities.max_context */
  REPRISE_CACHED_OUT_OF_RANGE = 3, /* more cached tokens than the context has before its last token */
  REPRISE_TOO_MANY_PENDING = 4,    /* more pending tokens than a pass has rows */
  REPRISE_SIZE_OUT_OF_RANGE = 5,   /* a size outside its bounds */
  REPRISE_INVALID_ARGUMENT = 6,    /* a null handle, a null array, a wrong `size`, or a value that cannot work */
  REPRISE_OUT_OF_MEMORY = 7,
  REPRISE_NOT_BEGUN = 8,           /* the session has no sequence: call reprise_session_begin() */
  REPRISE_NOT_PLANNED = 9,         /* there is no open pass: call reprise_session_plan() */
  REPRISE_FINISHED = 10,           /* generation has ended */
  REPRISE_BAD_PICKS = 11,          /* the picks cannot belong to this pass */
  REPRISE_OUT_OF_ROOM = 12,        /* the caller's buffer is too small */
  REPRISE_BAD_SNAPSHOT = 13,       /* the bytes are not a snapshot that this library, engine or tokenizer can use */
  REPRISE_TOKEN_OUT_OF_RANGE = 14, /* a token is outside the vocabulary of the history */
  REPRISE_INTERNAL = 15            /* an error that the library does not expect; please report it */
};

/* Describes an error. `message` says what is wrong and what to do. It is a constant string. */
typedef struct reprise_error {
  reprise_status status;
  const char* message;
  uint64_t value; /* the refused number; 0: none */
  uint64_t limit; /* the limit that this number violates; 0: none */
} reprise_error;

/* The version of the library, such as "0.1.0". */
REPRISE_API const char* reprise_version(void);

/* ---- Cost curves ------------------------------------------------------------------------------------------------ */

/* A measured pass. */
typedef struct reprise_cost_point {
  size_t sequences; /* at least 1 */
  size_t context;   /* tokens of each sequence before the pass */
  size_t rows;      /* rows of all sequences together */
  double nanoseconds;
} reprise_cost_point;

/* Creates the curve 1 + per_row x drafted rows, in plain passes. `error` may be null, here and below. */
REPRISE_API reprise_status reprise_curve_create_linear(double per_row, reprise_curve** curve, reprise_error* error);

/* Creates the curve through measured points, in any order. Each pair of `sequences` and `context` needs the time of a
 * pass of one row per sequence. */
REPRISE_API reprise_status reprise_curve_create(const reprise_cost_point* points, size_t count, reprise_curve** curve,
                                                reprise_error* error);
REPRISE_API void reprise_curve_destroy(reprise_curve* curve);

/* ---- Memories --------------------------------------------------------------------------------------------------- */

/* Bits of reprise_memory_options.flags. */
enum {
  REPRISE_MEMORY_NO_TEXT = 1,              /* keep what was learned, but no text and no counts */
  REPRISE_MEMORY_NO_PROMPTS = 2,           /* keep no text of prompts */
  REPRISE_MEMORY_NO_OUTPUTS = 4,           /* keep no text that the model generated */
  REPRISE_MEMORY_NO_NEXT_TOKENS = 8,       /* keep no counts of next tokens */
  REPRISE_MEMORY_SEPARATE_CALIBRATION = 16 /* salts do not share what reveals no token, either */
};

typedef struct reprise_memory_options {
  size_t size;
  size_t max_bytes;        /* of the text of a salt and its index; 0: 64 MiB */
  size_t next_token_bytes; /* of the table of next-token counts of a salt; 0: 4 MiB */
  size_t salts;            /* maximum number of salts that are kept at the same time; 0: 4 */
  uint64_t key;            /* must be secret and random if the text is not trusted */
  uint32_t vocabulary;     /* negative ids and those from this value on are placeholders; 0: 2^31 - 1 */
  uint32_t flags;          /* REPRISE_MEMORY_NO_TEXT and so on; 0: none */
} reprise_memory_options;

/* Creates what an engine keeps between requests: make one, and keep it as long as the engine. Followers, batches and
 * sessions with this memory (reprise_options) leave their requests to it, text and all that they learned, costs
 * included, and begin with it. Text never crosses salts; see history/memory.hpp. `options` may be null.
 * REPRISE_SIZE_OUT_OF_RANGE: among others, max_bytes above 18 GiB, next_token_bytes above 256 GiB, or vocabulary above
 * 2^31 - 1. */
REPRISE_API reprise_status reprise_memory_create(const reprise_memory_options* options, reprise_memory** memory,
                                                 reprise_error* error);
/* Handles that use the memory keep it alive. */
REPRISE_API void reprise_memory_destroy(reprise_memory* memory);

/* Keeps a text that no handle has decoded. Its first `prompt_count` tokens are the prompt. Placeholders, for example of
 * images, are neither stored nor counted, and no match continues across them. */
REPRISE_API reprise_status reprise_memory_add(reprise_memory* memory, uint64_t salt, const reprise_token* tokens,
                                              size_t count, size_t prompt_count);
/* Forgets all that was kept for a salt. Handles that use it go on with what they have. */
REPRISE_API reprise_status reprise_memory_forget(reprise_memory* memory, uint64_t salt);

/* Writes a snapshot of a salt to `buffer`, and its size to `*needed`. It has the text, the counts and the calibration,
 * but no costs of passes. `tokenizer`: a number that identifies the tokenizer and the model, such as a hash of the
 * file. REPRISE_OUT_OF_ROOM: `*needed` is the number of bytes needed. */
REPRISE_API reprise_status reprise_memory_save(reprise_memory* memory, uint64_t salt, uint64_t tokenizer, void* buffer,
                                               size_t room, size_t* needed);
/* Adds the contents of a snapshot to a salt. Any bytes are either loaded or refused; if they are refused, nothing
 * changes. REPRISE_TOKEN_OUT_OF_RANGE: a token of the snapshot is outside the vocabulary of the memory. The table of
 * next-token counts is loaded only if key and size are those of the saved table; otherwise the call succeeds and the
 * table stays as it was. */
REPRISE_API reprise_status reprise_memory_load(reprise_memory* memory, uint64_t salt, uint64_t tokenizer,
                                               const void* bytes, size_t count);
REPRISE_API const reprise_error* reprise_memory_error(const reprise_memory* memory);

/* ---- Options of followers, batches and sessions ----------------------------------------------------------------- */

typedef struct reprise_options {
  size_t size;
  const reprise_curve* curve;   /* costs of passes, copied; null: costs are learned from the times of passes */
  const reprise_memory* memory; /* kept alive by the handles that use it; null: none */
  size_t max_draft_nodes;       /* upper bound on a sequence's drafted tokens in any pass, at most 64: more is
                                 * refused with REPRISE_SIZE_OUT_OF_RANGE; 0: that of `most`, up to 64. If that is
                                 * REPRISE_UNLIMITED, it is 63 in a batch, and 32 in a follower or a session */
  size_t max_bytes;             /* upper bound on the memory of the index over a sequence; 0: no bound */
  uint64_t key;                 /* must be secret and random if the text is not trusted */
  const void* saved_costs;      /* pass costs saved by an earlier follower, batch or session; null: none. Costs that
                                 * the memory has are newer and go before them */
  size_t saved_costs_size;      /* bytes */
  const char* engine;           /* the name under which saved_costs were saved */
  size_t vocabulary;            /* number of token ids; 0: unknown. Negative ids and those from here on are
                                 * placeholders, for example of images: never drafted, and no match contains one */
  uint64_t salt;                /* a number for the parties that share text in the memory */
  double head_draft;            /* with a curve: what any run of the engine's draft head or draft model costs, in plain
                                 * passes. Without a curve, its costs are learned, and these four must be 0. With a
                                 * curve and all of them 0, each token counts as 5% of a pass */
  double head_token;            /* the same for each token of the longest draft */
  double head_row;              /* the same for each token of every draft */
  double head_late;             /* the same for each token that was committed in a pass without the head */
} reprise_options;

/* ---- Followers -------------------------------------------------------------------------------------------------- */

/* Creates a follower. See loop/follower.hpp for what it finds out by itself. `options` may be null, here and below. */
REPRISE_API reprise_status reprise_follower_create(const reprise_options* options, reprise_follower** follower,
                                                   reprise_error* error);
/* The memory has the last sequence then, as after reprise_follower_forget(). The other destroy functions do the same.
 */
REPRISE_API void reprise_follower_destroy(reprise_follower* follower);

/* Returns a draft of at most `most` tokens that may follow the `count` tokens in `ids`: all tokens that the engine has
 * committed. `now_ns`: the time of this call on a clock that does not go back, in nanoseconds, not negative; 0:
 * unknown. `conversation`: a number for the conversation, in every call or in none; 0: unknown. After an error other
 * than REPRISE_EMPTY_CONTEXT and REPRISE_INVALID_ARGUMENT, nothing is learned from the last pass. A pass whose tokens
 * no later call shows counts as lost for the loss budget. If `most` is 0 in one more call after the last pass of a
 * request, that pass counts as what it was. */
REPRISE_API reprise_status reprise_follower_draft(reprise_follower* follower, const reprise_token* ids, size_t count,
                                                  size_t most, int64_t now_ns, uint64_t conversation,
                                                  const reprise_token** draft, size_t* drafted);
/* Like reprise_follower_draft(), but reads new tokens only. `after`: the number of tokens that the engine had committed
 * at the last call without an error. Their sequence goes on, and `ids` are the tokens after them, possibly none. 0:
 * `ids` are all. REPRISE_INVALID_ARGUMENT: among others, a wrong `after`, also if the conversation is another one or
 * after reprise_follower_forget(); nothing changes. */
REPRISE_API reprise_status reprise_follower_draft_after(reprise_follower* follower, const reprise_token* ids,
                                                        size_t count, size_t after, size_t most, int64_t now_ns,
                                                        uint64_t conversation, const reprise_token** draft,
                                                        size_t* drafted);
/* Reports that the engine has run only the first `drafted` tokens of the last draft. Call it before the next draft.
 * Without it, the tokens that did not run count as rejected. */
REPRISE_API reprise_status reprise_follower_verified(reprise_follower* follower, size_t drafted);
/* Sets the tokens that end a generation, which are copied: nothing is drafted after them. They apply from the next
 * draft on, for all sequences. Tokens that follow such an end anyway are a new turn. */
REPRISE_API reprise_status reprise_follower_stop_at(reprise_follower* follower, const reprise_token* eos, size_t count);
/* The next draft begins a new sequence. Call it when a request has ended: the memory has its sequence then. */
REPRISE_API reprise_status reprise_follower_forget(reprise_follower* follower);
/* Like reprise_follower_forget(), with a text that the next output may repeat: a predicted output, such as the old
 * version of a file that is being rewritten. It is copied, and the next sequence alone drafts from it. Several calls
 * add several texts. */
REPRISE_API reprise_status reprise_follower_predict(reprise_follower* follower, const reprise_token* tokens,
                                                    size_t count);
/* Writes the counts of all sequences as a JSON object, with a final 0. `*needed`: bytes, the final 0 included. */
REPRISE_API reprise_status reprise_follower_statistics(reprise_follower* follower, char* buffer, size_t room,
                                                       size_t* needed);
/* Writes the learned pass costs under the name of an engine, a model and a machine, at most 100 bytes long. */
REPRISE_API reprise_status reprise_follower_save_costs(reprise_follower* follower, const char* engine, void* buffer,
                                                       size_t room, size_t* needed);
REPRISE_API const reprise_error* reprise_follower_error(const reprise_follower* follower);

/* ---- Batches ---------------------------------------------------------------------------------------------------- */

/* A slot of the next pass. */
typedef struct reprise_slot {
  size_t slot;              /* below the number of slots */
  const reprise_token* ids; /* all tokens that the engine has committed for the slot's request, or see `after` */
  size_t count;
  size_t most;                /* upper bound on the drafted tokens; 0 for a slot that must not draft */
  uint64_t conversation;      /* as in reprise_follower_draft() */
  const reprise_token* draft; /* result: the draft */
  size_t drafted;             /* result: its tokens */
  size_t after;               /* the number of tokens that the slot knows, if `ids` are those after them, possibly none;
                               * 0: `ids` are all. With it, the request of the slot goes on. */
} reprise_slot;

/* Creates followers for the `slots` slots of an engine, 1 to 65,536. They share the rows of each pass. See
 * batch/batch_follower.hpp. The member saved_costs has the costs of passes of one sequence; for more sequences, call
 * reprise_batch_load_costs(). */
REPRISE_API reprise_status reprise_batch_create(const reprise_options* options, size_t slots, reprise_batch** batch,
                                                reprise_error* error);
REPRISE_API void reprise_batch_destroy(reprise_batch* batch);

/* Writes the draft of each of the `count` slots that decode in the next pass. `now_ns`: as in
 * reprise_follower_draft(). REPRISE_INVALID_ARGUMENT: among others, a wrong `after`, and a slot number that does not
 * exist or occurs twice. A slot for which memory runs out gets an empty draft. */
REPRISE_API reprise_status reprise_batch_draft(reprise_batch* batch, reprise_slot* slots, size_t count, int64_t now_ns);
/* reprise_batch_draft() in two parts, for an engine that also has a draft head or a draft model. Writes to `drafted` of
 * each slot how many tokens the head should draft for it; 0: none. See batch/batch_follower.hpp. */
REPRISE_API reprise_status reprise_batch_propose_lookup(reprise_batch* batch, reprise_slot* slots, size_t count,
                                                        int64_t now_ns);
/* Then, for each slot that should have them: adds the tokens of the head, which follow the ids of the slot. More tokens
 * than it should draft are left out. */
REPRISE_API reprise_status reprise_batch_add_head(reprise_batch* batch, size_t slot, const reprise_token* tokens,
                                                  size_t count);
/* Then: writes the drafts of the same slots, in the same order. `head_ns`: how long the head took for all of them, not
 * negative; 0: unknown. REPRISE_INVALID_ARGUMENT: among others, another number of slots. */
REPRISE_API reprise_status reprise_batch_draft_proposed(reprise_batch* batch, reprise_slot* slots, size_t count,
                                                        int64_t head_ns);
/* Writes to `after` of each slot the number of tokens that it knows if its `ids` begin with them, or else 0. So an
 * engine without request numbers finds the slot of a text, and passes only the ids after these. */
REPRISE_API reprise_status reprise_batch_known(reprise_batch* batch, reprise_slot* slots, size_t count);
/* Adds rows that the engine has run since reprise_batch_draft(), of all kinds. Call it if a pass can have other rows
 * than the planned ones, such as those of a prompt. */
REPRISE_API reprise_status reprise_batch_ran(reprise_batch* batch, size_t rows);
/* Like reprise_follower_verified() and reprise_follower_stop_at(), for one slot. */
REPRISE_API reprise_status reprise_batch_verified(reprise_batch* batch, size_t slot, size_t drafted);
REPRISE_API reprise_status reprise_batch_stop_at(reprise_batch* batch, size_t slot, const reprise_token* eos,
                                                 size_t count);
/* Reports the likeliest tokens of a row of a slot's part of the pass, as reprise_session_report_top_k(). A row that the
 * pass does not have is ignored. REPRISE_NOT_PLANNED: the slot has no pass. */
REPRISE_API reprise_status reprise_batch_report_top_k(reprise_batch* batch, size_t slot, size_t row,
                                                      const reprise_token* likeliest, size_t count);
/* The next ids of a slot begin a new sequence. Call it when a request has ended: the memory has its sequence then. The
 * memory gets it also if the slot has other ids, is assigned, or is in none of 64 calls. */
REPRISE_API reprise_status reprise_batch_forget(reprise_batch* batch, size_t slot);
/* Like reprise_follower_predict(), for one slot. Call it after reprise_batch_assign(). */
REPRISE_API reprise_status reprise_batch_predict(reprise_batch* batch, size_t slot, const reprise_token* tokens,
                                                 size_t count);
/* The next ids of a slot begin a new sequence that drafts with the `memory`, `salt`, `key`, `max_bytes` and
 * `vocabulary` of these options, such as those of the request's tenant. The other members have no effect: costs belong
 * to the batch. A request that goes on in another slot needs a call there, too. Afterwards, the slot does not use its
 * earlier memory. */
REPRISE_API reprise_status reprise_batch_assign(reprise_batch* batch, size_t slot, const reprise_options* options);
/* Like reprise_follower_statistics(), for all sequences of a slot. */
REPRISE_API reprise_status reprise_batch_statistics(reprise_batch* batch, size_t slot, char* buffer, size_t room,
                                                    size_t* needed);
/* Writes the learned costs of passes of about `sequences` sequences, as reprise_follower_save_costs(). A batch learns
 * one curve for each power of two; 0 counts as 1. The bytes do not contain `sequences`: use a name for each number. */
REPRISE_API reprise_status reprise_batch_save_costs(reprise_batch* batch, size_t sequences, const char* engine,
                                                    void* buffer, size_t room, size_t* needed);
/* Starts the curve of passes of about `sequences` sequences again, from saved costs. If the bytes are refused, nothing
 * changes. Has no effect in a batch that was created with a curve. */
REPRISE_API reprise_status reprise_batch_load_costs(reprise_batch* batch, size_t sequences, const char* engine,
                                                    const void* bytes, size_t count);
REPRISE_API const reprise_error* reprise_batch_error(const reprise_batch* batch);

/* ---- Steps: batches whose ids are in one table ------------------------------------------------------------------ */

/* Kinds of rows of a step. */
enum {
  REPRISE_ROW_GOES_ON = 0, /* the request of the slot, with more ids */
  REPRISE_ROW_BEGINS = 1,  /* another request */
  REPRISE_ROW_WAITS = 2    /* a request that has run a part of its prompt: nothing changes */
};

/* A row of a step. */
typedef struct reprise_row {
  size_t slot;                     /* below the number of slots */
  size_t at;                       /* its line in `ids` and `lengths` */
  size_t most;                     /* upper bound on the drafted tokens */
  size_t kind;                     /* one of REPRISE_ROW_... */
  const reprise_options* options;  /* of a new request, see reprise_batch_assign(); null: those of the slot stay */
  const reprise_token* prediction; /* of a new request, see reprise_batch_predict(); null: none */
  size_t predicted;                /* tokens of the prediction */
  size_t prompt;                   /* ids before its first sampled token; without a prediction, 0 will do */
  size_t drafted;                  /* result: the tokens of the draft */
} reprise_row;

/* A step of an engine whose ids are in one table. What it points to must stay until the step is done. */
typedef struct reprise_step {
  size_t size;
  reprise_batch* batch;
  const reprise_token* ids; /* the table */
  size_t stride;            /* ids of a line of the table */
  size_t below;             /* all ids must be below it; 0: no bound. A row with another id drafts nothing */
  size_t longest;           /* ids that a sequence may have; 0: no bound */
  const int32_t* lengths;   /* the ids of each line: those that the engine has committed */
  reprise_row* rows;        /* those of the pass, and then `ended` rows, of which only `slot` and `options` count */
  size_t count;             /* rows of the pass, at most one for each slot */
  size_t ended;             /* slots whose request has ended */
  int64_t* drafts;          /* result: `width` ids for each row of the pass; those after a draft are the last id */
  size_t width;             /* upper bound on the drafted tokens of a row */
  int64_t now_ns;           /* as in reprise_follower_draft(); -1: the time of the call */
  int32_t status;           /* result: the first error. Its row drafts nothing until a request begins in its slot */
  int32_t done;             /* result: 1 at the end of the call */
} reprise_step;

/* Does what a step of an engine needs, in one call: ended requests, new ones, and the drafts of all rows. `step` is a
 * reprise_step. So a device can make the call in the order of its kernels, without a wait of the host
 * (cudaLaunchHostFunc): after those that write `lengths` and the ids, and before those that read `drafts`. No other
 * function of the batch may run meanwhile. Cost: 2 to 3 us for each row, and no comparison of texts. */
REPRISE_API void reprise_batch_step(void* step);

/* ---- Sessions --------------------------------------------------------------------------------------------------- */

/* How an engine discards the rejected rows of a pass. */
enum {
  REPRISE_ROLLBACK_TRIM = 0,     /* it cuts the end of its cache (attention) */
  REPRISE_ROLLBACK_SNAPSHOT = 1, /* it restores a saved state, and runs the accepted tokens again (recurrent, hybrid) */
  REPRISE_ROLLBACK_PER_ROW = 2   /* it keeps one state per row of the pass */
};

/* The abilities of an engine for one sequence. */
typedef struct reprise_capabilities {
  size_t size;
  size_t max_rows;       /* rows of one pass, pending tokens included; 0: no bound */
  size_t max_context;    /* tokens of a sequence; 0: no bound */
  size_t max_depth;      /* drafted tokens on one path; 0: no bound */
  size_t max_leaves;     /* paths of a draft; 0 and 1: chains only; REPRISE_UNLIMITED: any tree */
  size_t max_rollback;   /* drafted rows that can be rolled back; 0: no bound */
  const size_t* widths;  /* row counts that a pass with a draft may have, at most 96 */
  size_t width_count;    /* 0: any row count */
  int32_t rollback;      /* one of REPRISE_ROLLBACK_... */
  int32_t has_pad_token; /* 1: pad_token fills spare rows up to an allowed width; 0: there is none */
  reprise_token pad_token;
} reprise_capabilities;

/* The conditions that end a generation. */
typedef struct reprise_limits {
  size_t size;
  size_t max_tokens;        /* output tokens; 0: no bound */
  size_t max_context;       /* tokens of the sequence; 0: no bound */
  const reprise_token* eos; /* end-of-sequence tokens and other tokens that end generation */
  size_t eos_count;
} reprise_limits;

/* The next batch to run: [pending | drafted]. */
typedef struct reprise_pass {
  size_t size;
  const reprise_token* batch;
  size_t rows;
  size_t pending;         /* leading rows that are not in the cache; the last is the anchor */
  size_t drafted;         /* rows after the pending ones */
  const int32_t* parents; /* of each drafted row: the index of a drafted row, or -1 for the anchor */
  const uint32_t* depths; /* of each drafted row: its position is that of the anchor plus its depth */
} reprise_pass;

/* The commit of a pass. */
typedef struct reprise_commit {
  size_t size;
  const reprise_token* tokens; /* the committed tokens */
  size_t count;
  const size_t* rows; /* the rows of the batch that stay in the cache, ascending; for a chain, a prefix */
  size_t keep;        /* number of these rows */
  size_t accepted;    /* committed tokens that were drafted */
  int32_t restore;    /* 1: keep is 0; restore the state before the pass (REPRISE_ROLLBACK_SNAPSHOT) */
  int32_t finish;     /* one of REPRISE_FINISH_... */
} reprise_commit;

/* Why generation has ended. */
enum {
  REPRISE_FINISH_NONE = 0,
  REPRISE_FINISH_EOS = 1,
  REPRISE_FINISH_MAX_TOKENS = 2,
  REPRISE_FINISH_CONTEXT_FULL = 3
};

/* The state of a session. */
typedef struct reprise_state {
  size_t size;
  const reprise_token* context; /* all committed tokens */
  size_t context_count;
  const reprise_token* output; /* the output since the last begin, append or rebase, without the token that ended it */
  size_t output_count;
  size_t cached;       /* tokens whose rows are in the engine's cache */
  size_t top_k_wanted; /* number of likeliest tokens that a row should be reported with; 0: none are wanted */
  size_t memory_bytes;
  int32_t finish; /* one of REPRISE_FINISH_... */
} reprise_state;

REPRISE_API reprise_status reprise_session_create(const reprise_options* options, reprise_session** session,
                                                  reprise_error* error);
/* Creates a second session that continues from the state of `session`, without its open pass. */
REPRISE_API reprise_status reprise_session_fork(reprise_session* session, reprise_session** fork);
/* Hands the sequence to the memory. The next reprise_session_begin() does so, too: call it if the request has ended. */
REPRISE_API reprise_status reprise_session_keep(reprise_session* session);
REPRISE_API void reprise_session_destroy(reprise_session* session);

/* Gives the next reprise_session_begin() a text that the output may repeat: a predicted output, such as the old version
 * of a file that is being rewritten. It is copied. Several calls add several texts. */
REPRISE_API reprise_status reprise_session_predict(reprise_session* session, const reprise_token* tokens, size_t count);
/* Starts a sequence. `cached`: how many leading tokens are in the engine's cache; REPRISE_UNLIMITED: all except the
 * last. The other tokens are pending: the first pass runs them. `capabilities` may be null. */
REPRISE_API reprise_status reprise_session_begin(reprise_session* session, const reprise_token* tokens, size_t count,
                                                 size_t cached, const reprise_capabilities* capabilities);
/* For an engine that also has a draft head or a draft model, before reprise_session_plan(): writes to `*tokens` how
 * many tokens the head should draft, 0 for none. An open pass is given up. `limits` and `most` are those of the next
 * plan, which then does not read its own. See headed_speculator.hpp. */
REPRISE_API reprise_status reprise_session_propose_lookup(reprise_session* session, const reprise_limits* limits,
                                                          size_t most, size_t* tokens);
/* Then, if it should draft: adds the tokens of the head. More than it should draft are left out. `head_ns`: how long
 * the head took, not negative; 0: unknown. */
REPRISE_API reprise_status reprise_session_add_head(reprise_session* session, const reprise_token* tokens, size_t count,
                                                    int64_t head_ns);
/* Returns the next pass to run, with at most `most` drafted tokens. An open pass is given up: it may have run, so it
 * counts as lost for the loss budget. `limits` may be null. They apply until the next plan. */
REPRISE_API reprise_status reprise_session_plan(reprise_session* session, const reprise_limits* limits, size_t most,
                                                reprise_pass* pass);
/* Reports the likeliest tokens of a row of the open pass, the likeliest first. `row`: 0 for the anchor, i for the
 * drafted row i - 1. Rows that will not be accepted may be reported too. */
REPRISE_API reprise_status reprise_session_report_top_k(reprise_session* session, size_t row,
                                                        const reprise_token* likeliest, size_t count);
/* The same for the row of a committed token, such as those of the prompt. */
REPRISE_API reprise_status reprise_session_report_prompt_row(reprise_session* session, size_t position,
                                                             const reprise_token* likeliest, size_t count);
/* Commits the open pass. picks[0] is the target's token after the anchor, picks[i] its token after drafted row i - 1.
 * `count`: at least 1 and at most 1 + drafted; of a chain, reading may stop after the first pick that the draft does
 * not have; of a tree, all picks are needed. `pass_ns`: how long the pass took, not negative; 0: unknown. The engine
 * then keeps the rows in `commit`. After an error the pass stays open. */
REPRISE_API reprise_status reprise_session_commit(reprise_session* session, const reprise_token* picks, size_t count,
                                                  int64_t pass_ns, reprise_commit* commit);
/* Appends tokens that the engine did not generate, such as the next turn. `cached`: as in reprise_session_begin(). An
 * open pass is given up, here and below. */
REPRISE_API reprise_status reprise_session_append(reprise_session* session, const reprise_token* tokens, size_t count,
                                                  size_t cached);
/* Removes all but the first `count` tokens. */
REPRISE_API reprise_status reprise_session_truncate(reprise_session* session, size_t count);
/* Replaces the sequence, and keeps the replaced tokens as evidence. `*shared`: the number of leading tokens that both
 * have in common; only their rows are worth keeping. */
REPRISE_API reprise_status reprise_session_rebase(reprise_session* session, const reprise_token* tokens, size_t count,
                                                  size_t cached, size_t* shared);
/* Sets how many leading tokens are in the engine's cache, for example after preemption. */
REPRISE_API reprise_status reprise_session_set_cached(reprise_session* session, size_t cached);
REPRISE_API reprise_status reprise_session_state(reprise_session* session, reprise_state* state);
/* Like the functions of the follower. */
REPRISE_API reprise_status reprise_session_statistics(reprise_session* session, char* buffer, size_t room,
                                                      size_t* needed);
REPRISE_API reprise_status reprise_session_save_costs(reprise_session* session, const char* engine, void* buffer,
                                                      size_t room, size_t* needed);
REPRISE_API const reprise_error* reprise_session_error(const reprise_session* session);
/* NOLINTEND */

#ifdef __cplusplus
}
#endif

#endif /* REPRISE_C_REPRISE_H */
