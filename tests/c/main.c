#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "check.h"

enum { FILES = 16, LINES = 1000 };

/* Of each line of each file: 0 if its check was not evaluated, 1 if it always held, -1 if it did not. */
static signed char outcomes[FILES][LINES];

static signed char* outcome_of(const char* file, int line) {
  static const char* files[FILES];
  for (int i = 0; i < FILES; ++i) {
    const char* none = NULL;
    if (__atomic_compare_exchange_n(&files[i], &none, file, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
        strcmp(files[i], file) == 0)
      return &outcomes[i][line % LINES];
  }
  abort(); /* more files of tests than FILES */
}

int check_that(int holds, const char* what, const char* file, int line) {
  signed char* outcome = outcome_of(file, line);
  signed char none = 0;
  if (holds)
    __atomic_compare_exchange_n(outcome, &none, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  else
    __atomic_store_n(outcome, -1, __ATOMIC_SEQ_CST);
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
  int passed = 0, failed = 0;
  for (int i = 0; i < FILES * LINES; ++i) {
    passed += outcomes[i / LINES][i % LINES] == 1;
    failed += outcomes[i / LINES][i % LINES] == -1;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
