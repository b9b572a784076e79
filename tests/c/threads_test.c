/* Several threads: with handles of their own, with one handle, and with handles that others release. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { threads = 4, rounds = 40 };

/* Records, plays and differentiates on a tape of its own; errors are those of the thread. */
static void* alone(void* argument) {
  const float number = *(int*)argument;
  for (int round = 0; round < rounds; ++round) {
    xtape_tape* tape = NULL;
    xtape_player* player = NULL;
    xtape_var x, y, unknown;
    OK(xtape_tape_new(NULL, &tape));
    OK(xtape_input(tape, "x", XTAPE_FLOAT32, 0, NULL, &x));
    OK(xtape_op(tape, "mul", VARS(x, x), 2, NULL, &y, 1, NULL));
    char name[32];
    snprintf(name, sizeof name, "no_op_%d", *(int*)argument);
    FAILS(XTAPE_ERROR, name, xtape_op(tape, name, &x, 1, NULL, &unknown, 1, NULL));
    OK(xtape_player_new(tape, &y, 1, NULL, 0, "{\"threads\": 1}", &player));
    const xtape_view feed = floats(&number, 0, NULL);
    xtape_view view;
    OK(xtape_play(player, &x, &feed, 1));
    OK(xtape_player_view(player, 0, &view));
    CHECK(*(float*)view.data == number * number);
    OK(xtape_release(player));
    OK(xtape_release(tape));
  }
  return NULL;
}

struct shared {
  xtape_store* store;
  xtape_tape* tape;
  _Atomic(void*) handle;
  atomic_int recorded;
};

/* All threads record on one tape and fill one store. */
static void* together(void* argument) {
  struct shared* shared = argument;
  for (int round = 0; round < rounds; ++round) {
    char name[32];
    snprintf(name, sizeof name, "w%d", round);
    xtape_var w, y;
    OK(xtape_store_initialise(shared->store, name, XTAPE_FLOAT32, 1, SHAPE(2), "1", 0));
    OK(xtape_parameter(shared->tape, shared->store, name, &w));
    OK(xtape_op(shared->tape, "exp", &w, 1, NULL, &y, 1, NULL));
    atomic_fetch_add(&shared->recorded, 1);
    const char* text = NULL;
    OK(xtape_describe(shared->store, &text));
  }
  return NULL;
}

/* Uses a handle that another thread releases: the call works, or says that the handle has been released. */
static void* using(void* argument) {
  struct shared* shared = argument;
  for (int round = 0; round < 4 * rounds; ++round) {
    const char* text = NULL;
    const xtape_status status = xtape_describe(atomic_load(&shared->handle), &text);
    CHECK(status == XTAPE_OK || (status == XTAPE_HANDLE_ERROR && strstr(xtape_last_error(), "released") != NULL));
  }
  return NULL;
}
static void* releasing(void* argument) {
  struct shared* shared = argument;
  for (int round = 0; round < rounds; ++round) {
    xtape_store* fresh = NULL;
    OK(xtape_store_new(&fresh));
    OK(xtape_release(atomic_exchange(&shared->handle, fresh)));
  }
  return NULL;
}

static void run_all(void* (*first)(void*), void* (*others)(void*), void* argument) {
  pthread_t started[threads];
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&started[i], NULL, i == 0 ? first : others, argument) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(started[i], NULL) == 0);
}

void threads_tests(void) {
  static int numbers[threads];
  pthread_t started[threads];
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i + 1;
    CHECK(pthread_create(&started[i], NULL, alone, &numbers[i]) == 0);
  }
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(started[i], NULL) == 0);

  struct shared shared = {0};
  OK(xtape_store_new(&shared.store));
  OK(xtape_tape_new(NULL, &shared.tape));
  run_all(together, together, &shared);
  const char* text = NULL;
  OK(xtape_describe(shared.tape, &text));
  char wanted[32];
  snprintf(wanted, sizeof wanted, "\"nodes\":%d,", rounds + threads * rounds);
  CHECK(has(text, wanted));
  OK(xtape_release(shared.tape));
  OK(xtape_release(shared.store));

  xtape_store* first = NULL;
  OK(xtape_store_new(&first));
  atomic_store(&shared.handle, first);
  run_all(releasing, using, &shared);
  OK(xtape_release(atomic_load(&shared.handle)));
}
