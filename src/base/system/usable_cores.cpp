#include "base/system/usable_cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "base/threads/threads.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
/// Returns the text of a file, or "" if it cannot be read.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Cores.

/// Returns the smallest number of `list` ("0-1,64-65") if the list contains `processor`, otherwise `processor`.
int first_of(const std::string& list, int processor) {
  std::istringstream text(list);
  int first = processor;
  bool is_listed = false;
  for (int begin = 0; text >> begin; text.ignore()) {
    int end = begin;
    if (text.peek() == '-') text.ignore() >> end;
    first = std::min(first, begin);
    is_listed = is_listed || (begin <= processor && processor <= end);
  }
  return is_listed ? first : processor;
}

std::vector<int> cores_of(const std::string& root, const std::vector<int>& processors) {
  std::set<int> cores;
  for (const int processor : processors) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(processor);
    cores.insert(first_of(text_of(folder + "/topology/thread_siblings_list"), processor));
  }
  return {cores.begin(), cores.end()};
}

// Control groups. A process belongs to a group of each hierarchy. A hierarchy is mounted as a tree of folders.

/// Makes `least` the smaller of itself and `quota`, where 0 means no quota.
void lower(double& least, double quota) {
  if (quota > 0 && (least == 0 || quota < least)) least = quota;
}

/// Returns the quota of the group with this folder alone, 0 if it has none.
double own_quota(const std::string& folder, bool is_version_2) {
  std::istringstream text(is_version_2
                              ? text_of(folder + "/cpu.max")
                              : text_of(folder + "/cpu.cfs_quota_us") + ' ' + text_of(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;  // microseconds; without a quota, "max" in version 2 and -1 in version 1
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

/// Returns the path of the process's group in the hierarchy, from the lines of /proc/self/cgroup, "" if there is none.
/// The lines are NUMBER:CONTROLLERS:PATH. The hierarchy of version 2 has the number 0 and no controllers.
std::string group_in(const std::string& lines, bool is_version_2) {
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    std::getline(std::getline(std::getline(parts, number, ':'), controllers, ':'), path);
    if (is_version_2 ? number == "0" && controllers.empty() : (',' + controllers + ',').find(",cpu,") != line.npos)
      return path;
  }
  return "";
}

/// Returns the least quota of the process's group in a hierarchy and of its parents that are mounted, 0 if there is
/// none.
double least_quota(const std::string& root, bool is_version_2) {
  const std::string group = group_in(text_of(root + "/proc/self/cgroup"), is_version_2);
  std::istringstream mounts(text_of(root + "/proc/self/mountinfo"));
  double least = 0;
  // ID PARENT DEVICE TOP POINT OPTIONS… - TYPE SOURCE OPTIONS, where POINT shows the part of the tree below TOP
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t middle = std::min(line.find(" - "), line.size());
    std::istringstream before(line.substr(0, middle)), after(line.substr(middle));
    std::string ignored, top, point, type, options;
    before >> ignored >> ignored >> ignored >> top >> point;
    after >> ignored >> type >> ignored >> options;
    if (is_version_2 ? type != "cgroup2" : type != "cgroup" || (',' + options + ',').find(",cpu,") == options.npos)
      continue;
    if (top == "/") top = "";
    if (group.empty() || !(group + '/').starts_with(top + '/')) continue;
    std::string below = group == "/" ? "" : group.substr(top.size());
    for (; !below.empty(); below.erase(below.rfind('/'))) lower(least, own_quota(root + point + below, is_version_2));
    lower(least, own_quota(root + point, is_version_2));
  }
  return least;
}

/// Returns the processors on which the first thread of this process may run, or {} if the system does not tell.
std::vector<int> affinity() {
  std::vector<int> allowed;
  // The system refuses a mask that has less bits than its own.
  for (std::size_t sets = 1; sets <= 1024; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof mask[0];
    std::memset(mask.data(), 0, bytes);
    if (sched_getaffinity(getpid(), bytes, mask.data()) == 0) {
      for (int i = 0; i < static_cast<int>(8 * bytes); ++i)
        if (CPU_ISSET_S(i, bytes, mask.data())) allowed.push_back(i);
      break;
    }
    if (errno != EINVAL) break;
  }
  return allowed;
}
}  // namespace

int UsableCores::count() const {
  const int most = std::max(1, static_cast<int>(cores.size()));
  return quota > 0 && quota < most ? static_cast<int>(std::ceil(quota)) : most;
}

std::string UsableCores::reason() const {
  const std::string of = "of " + std::to_string(processors) + (processors == 1 ? " processor" : " processors");
  if (count() < static_cast<int>(cores.size())) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", quota);
    return of + ": the quota of the control group is " + number;
  }
  const bool has_siblings = static_cast<int>(cores.size()) < allowed;
  if (allowed < processors)
    return of + ": the affinity mask has " + std::to_string(allowed) +
           (has_siblings ? ", on " + std::to_string(cores.size()) + " cores" : "");
  return of + (has_siblings ? ": one for each core" : "");
}

UsableCores usable_cores(const std::string& root, const std::vector<int>& allowed, int processors) {
  UsableCores usable;
  usable.allowed = static_cast<int>(allowed.size());
  usable.processors = std::max(processors, usable.allowed);
  usable.cores = cores_of(root, allowed);
  for (const bool is_version_2 : {true, false}) lower(usable.quota, least_quota(root, is_version_2));
  return usable;
}

UsableCores usable_cores() {
  const int processors = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  std::vector<int> allowed = affinity();
  if (allowed.empty()) {
    allowed.resize(static_cast<std::size_t>(processors));
    std::iota(allowed.begin(), allowed.end(), 0);
  }
  return usable_cores("", allowed, processors);
}

ThreadChoice chosen_threads(const char* variable, const UsableCores& usable) {
  const std::string text = variable == nullptr ? "" : variable;
  if (text.empty()) return {usable.count(), usable.reason()};
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  int count = 0;
  const std::from_chars_result read = std::from_chars(text.data() + begin, text.data() + text.size(), count);
  const std::size_t end = text.find_first_not_of(' ', static_cast<std::size_t>(read.ptr - text.data()));
  if (read.ec != std::errc() || (end != text.npos && text[end] != ',') || count < 1 || count > most_threads)
    throw Error("OMP_NUM_THREADS must begin with a number of threads from 1 to " + std::to_string(most_threads) +
                ", not be '" + text + "'");
  return {count, "OMP_NUM_THREADS"};
}

namespace {
ThreadChoice& choice_of_process() {
  static ThreadChoice chosen = chosen_threads(std::getenv("OMP_NUM_THREADS"), usable_cores());
  return chosen;
}
}  // namespace

const ThreadChoice& default_threads() {
  return choice_of_process();
}

void limit_default_threads(int count, const std::string& reason) {
  ThreadChoice& chosen = choice_of_process();
  if (count < chosen.count) chosen = {count, reason};
}

}  // namespace xtape
