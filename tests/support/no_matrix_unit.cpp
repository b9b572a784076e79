// For LD_PRELOAD: the system refuses this process the matrix unit (AMX), as on a processor that has none.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

extern "C" long syscall(long number, ...) noexcept {
  long words[6];
  std::va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  constexpr long ask_for_permission = 0x1023;
  if (number == SYS_arch_prctl && words[0] == ask_for_permission) {
    errno = EINVAL;
    return -1;
  }
  static const auto next = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
