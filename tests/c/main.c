#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "check.h"

int checks_passed = 0, checks_failed = 0;

int check_that(int holds, const char* what, const char* file, int line) {
  __atomic_fetch_add(holds ? &checks_passed : &checks_failed, 1, __ATOMIC_RELAXED);
  if (!holds) printf("FAILED: %s, line %d: %s\n", file, line, what);
  return holds;
}

int check_status(xtape_status got, xtape_status wanted, const char* words, const char* call, const char* file,
                 int line) {
  const char* error = got == XTAPE_OK ? "" : xtape_last_error();
  const int holds = got == wanted && (wanted == XTAPE_OK || (error[0] != '\0' && strstr(error, words) != NULL));
  if (!check_that(holds, call, file, line)) printf("  status %d, not %d with '%s': %s\n", got, wanted, words, error);
  return holds;
}

static char folder[] = "/tmp/xtape-c-XXXXXX";
const char* work_folder(void) {
  return folder;
}
const char* work_path(const char* name) {
  static char paths[8][256];
  static int next = 0;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

void* released(void) {
  xtape_store* store = NULL;
  OK(xtape_store_new(&store));
  OK(xtape_release(store));
  return store;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (mkdtemp(folder) == NULL) return 1;
  arrays_tests();
  tapes_tests();
  derivatives_tests();
  players_tests();
  models_tests();
  threads_tests();
  random_tests();
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) printf("cannot remove %s\n", folder);
  printf("%d passed, %d failed\n", checks_passed, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}
