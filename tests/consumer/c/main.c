/* SPDX-License-Identifier: Apache-2.0 */
#include <reprise/c/reprise.h>
#include <stdio.h>

int main(void) {
  const reprise_options options = {.size = sizeof options};
  const reprise_token ids[] = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2};
  const reprise_token* draft;
  size_t drafted;
  reprise_follower* follower;
  reprise_error error;
  if (reprise_follower_create(&options, &follower, &error) != REPRISE_OK) return puts(error.message), 1;
  if (reprise_follower_draft(follower, ids, 14, 4, 0, 0, &draft, &drafted) != REPRISE_OK)
    return puts(reprise_follower_error(follower)->message), 1;
  printf("reprise %s drafts %lu tokens, the first is %d\n", reprise_version(), (unsigned long)drafted,
         drafted == 0 ? -1 : (int)draft[0]);
  drafted = drafted != 0 && draft[0] == 3;
  reprise_follower_destroy(follower);
  return drafted ? 0 : 1;
}
