/* SPDX-License-Identifier: Apache-2.0 */
#include <reprise_c/reprise.h>
#include <stdio.h>

int main(void) {
  reprise_token ids[100] = {1, 2, 3, 4, 5, 1, 2, 3}; /* the prompt, then the output */
  const reprise_token* draft;
  size_t count = 8, passes = 0, drafted, i;
  reprise_follower* follower;
  reprise_error error;
  if (reprise_follower_create(NULL, &follower, &error) != REPRISE_OK) return puts(error.message), 1;
  while (count < 80) {
    if (reprise_follower_draft(follower, ids, count, 8, 0, 0, &draft, &drafted) != REPRISE_OK)
      return puts(reprise_follower_error(follower)->message), 1;
    /* Your engine runs [last token | draft] in one pass and picks a token after each row. This one counts to 5. */
    for (i = 0, ++passes; i <= drafted; ++i) {
      const reprise_token pick = ids[count - 1] % 5 + 1;
      ids[count++] = pick;
      if (i < drafted && pick != draft[i]) break; /* the rest of the draft is rejected */
    }
  }
  printf("%lu tokens in %lu passes\n", (unsigned long)(count - 8), (unsigned long)passes);
  reprise_follower_destroy(follower);
  return passes < 40 ? 0 : 1;
}
