/* Functions that g++ 12 and libstdc++ use and that glibc 2.28 lacks. old_glibc.sh links them into the library, which
 * shows them to nobody. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* 2.32. Not 0 would say that there is one thread, so that counts need no atomic operations. */
HIDDEN char __libc_single_threaded = 0;

/* 2.36. */
HIDDEN uint32_t arc4random(void) {
  uint32_t number;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) abort();
  return number;
}

/* 2.30. Waits until a time of any clock: for the rest of this time, by the clock of the condition. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  struct timespec now, end;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += until->tv_sec - now.tv_sec;
  end.tv_nsec += until->tv_nsec - now.tv_nsec;
  for (; end.tv_nsec < 0; end.tv_nsec += 1000000000) --end.tv_sec;
  for (; end.tv_nsec >= 1000000000; end.tv_nsec -= 1000000000) ++end.tv_sec;
  return pthread_cond_timedwait(condition, mutex, &end);
}

/* 2.35. Finds the object of an address and its unwind tables, for exceptions. */
struct wanted {
  uintptr_t address;
  struct dl_find_object* found;
};
static int look_at(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct wanted* wanted = data;
  int inside = 0;
  void* tables = NULL;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) tables = (void*)begin;
    if (part->p_type != PT_LOAD || wanted->address < begin || wanted->address - begin >= part->p_memsz) continue;
    inside = 1;
    wanted->found->dlfo_map_start = (void*)begin;
    wanted->found->dlfo_map_end = (void*)(begin + part->p_memsz);
  }
  if (!inside || tables == NULL) return 0;
  wanted->found->dlfo_flags = 0;
  wanted->found->dlfo_link_map = NULL;
  wanted->found->dlfo_eh_frame = tables;
  return 1;
}
HIDDEN int _dl_find_object(void* address, struct dl_find_object* found) {
  struct wanted wanted = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_at, &wanted) == 1 ? 0 : -1;
}
