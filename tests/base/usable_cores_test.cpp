// The machine and the control groups are files below a folder of the test.
#include "base/system/usable_cores.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "folders.hpp"

using namespace xtape;
using xtape::test::error_of;
using xtape::test::Folder;

namespace {
const std::string version_1 =
    "31 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:29 / /sys/fs/cgroup/cpuset rw,nosuid shared:8 - cgroup cgroup rw,cpuset\n";
const std::string version_2 =
    "24 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev - cgroup2 cgroup2 rw,nsdelegate\n";

/// A machine whose process belongs to these groups.
struct Machine {
  Machine(const std::string& groups, const std::string& mounts) {
    root.write("proc/self/cgroup", groups);
    root.write("proc/self/mountinfo", mounts);
  }
  void set(const std::string& group, const std::string& text) const {
    root.write("sys/fs/cgroup" + group + "/cpu.max", text);
  }
  void set_version_1(const std::string& group, const std::string& quota, const std::string& period) const {
    root.write("sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_quota_us", quota);
    root.write("sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_period_us", period);
  }
  UsableCores of(int processors) const {
    std::vector<int> allowed(static_cast<std::size_t>(processors));
    std::iota(allowed.begin(), allowed.end(), 0);
    return usable_cores(root.path(), allowed, processors);
  }
  Folder root;
};

void set_siblings(const Folder& root, int processor, const std::string& list) {
  root.write("sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list", list);
}
}  // namespace

TEST_CASE("a quota of 2 processors on 64 leaves 2 threads") {
  const Machine machine("0::/app\n", version_2);
  machine.set("/app", "200000 100000\n");
  const UsableCores usable = machine.of(64);
  CHECK(usable.count() == 2);
  CHECK(usable.reason() == "of 64 processors: the quota of the control group is 2");
}

TEST_CASE("the strictest of the nested groups counts") {
  const Machine machine("0::/slice/app\n", version_2);
  machine.set("/slice/app", "800000 100000\n");
  machine.set("/slice", "150000 50000\n");
  CHECK(machine.of(64).count() == 3);
  machine.set("/slice/app", "100000 100000\n");
  CHECK(machine.of(64).count() == 1);
  machine.set("/slice/app", "max 100000\n");
  machine.set("/slice", "max 100000\n");
  CHECK(machine.of(64).count() == 64);
  machine.set("", "500000 100000\n");  // the root of a container
  CHECK(machine.of(64).count() == 5);
}

TEST_CASE("a started processor of the quota is a thread") {
  const Machine machine("0::/\n", version_2);
  machine.set("", "50000 100000\n");
  CHECK(machine.of(8).count() == 1);
  CHECK(machine.of(8).reason() == "of 8 processors: the quota of the control group is 0.5");
  machine.set("", "250000 100000\n");
  CHECK(machine.of(8).count() == 3);
  CHECK(machine.of(3).count() == 3);
  CHECK(machine.of(3).reason() == "of 3 processors");  // the quota takes no core away
  CHECK(machine.of(2).count() == 2);
}

TEST_CASE("quotas of version 1, also beside a hierarchy of version 2") {
  const Machine machine("4:cpuset:/\n3:cpu,cpuacct:/docker/a\n0::/other\n", version_1 + version_2);
  machine.set_version_1("", "-1\n", "100000\n");
  machine.set_version_1("/docker/a", "-1\n", "100000\n");
  CHECK(machine.of(16).count() == 16);
  machine.set_version_1("/docker", "400000\n", "100000\n");
  CHECK(machine.of(16).count() == 4);
  machine.set_version_1("/docker/a", "120000\n", "100000\n");
  CHECK(machine.of(16).count() == 2);
  machine.set("/other", "100000 100000\n");
  CHECK(machine.of(16).count() == 1);
}

TEST_CASE("a mount of a part of the hierarchy is the part's folder") {
  const std::string part = "40 24 0:26 /docker/a /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
  const Machine machine("0::/docker/a/inner\n", part);
  machine.set("", "700000 100000\n");
  CHECK(machine.of(16).count() == 7);
  machine.set("/inner", "300000 100000\n");
  CHECK(machine.of(16).count() == 3);
  const Machine elsewhere("0::/docker/ab\n", part);  // a group that the mount does not show
  elsewhere.set("", "700000 100000\n");
  CHECK(elsewhere.of(16).count() == 16);
}

TEST_CASE("files that are missing or malformed limit nothing") {
  const Folder empty;
  const UsableCores usable = usable_cores(empty.path(), {0, 1, 2, 3}, 4);
  CHECK(usable.count() == 4);
  CHECK(usable.reason() == "of 4 processors");
  CHECK(Machine("0::/app\n", version_2).of(4).count() == 4);
  for (const char* groups : {"", "nonsense", "0::", "0::app\n", "::::\n", "0::/../..\n", "0::/app"})
    for (const char* quota :
         {"", "max", "nonsense", "-1 100000", "0 100000", "100000", "100000 0", "100000 nonsense"}) {
      const Machine machine(groups, version_2 + "nonsense\n\n - cgroup2\n");
      machine.set("/app", quota);
      machine.set("", quota);
      INFO(groups << " " << quota);
      CHECK(machine.of(4).count() == 4);
    }
  for (const char* list : {"", "nonsense", "7", "9-2", "-", "0,", "99999999999999999999", "1-99999999999999999999"}) {
    for (int processor : {0, 1}) set_siblings(empty, processor, list);
    INFO(list);
    CHECK(usable_cores(empty.path(), {0, 1}, 2).count() == 2);
  }
}

TEST_CASE("a process that may run on 3 of 8 processors has 3 threads") {
  const Folder root;
  const UsableCores usable = usable_cores(root.path(), {1, 4, 6}, 8);
  CHECK(usable.count() == 3);
  CHECK(usable.cores == std::vector<int>{1, 4, 6});
  CHECK(usable.reason() == "of 8 processors: the affinity mask has 3");
}

TEST_CASE("the processors of a core share one thread") {
  const Folder root;
  for (int processor = 0; processor < 8; ++processor)  // as on most servers: the second half are siblings of the first
    set_siblings(root, processor, std::to_string(processor % 4) + "," + std::to_string(processor % 4 + 4) + "\n");
  const UsableCores all = usable_cores(root.path(), {0, 1, 2, 3, 4, 5, 6, 7}, 8);
  CHECK(all.count() == 4);
  CHECK(all.cores == std::vector<int>{0, 1, 2, 3});
  CHECK(all.reason() == "of 8 processors: one for each core");
  CHECK(usable_cores(root.path(), {0, 4, 5, 6}, 8).count() == 3);
  CHECK(usable_cores(root.path(), {0, 4, 5, 6}, 8).reason() == "of 8 processors: the affinity mask has 4, on 3 cores");
  for (int processor = 0; processor < 4; ++processor)  // neighbours, as in many virtual machines
    set_siblings(root, processor, processor < 2 ? "0-1\n" : "2-3\n");
  CHECK(usable_cores(root.path(), {0, 1, 2, 3}, 4).cores == std::vector<int>{0, 2});
  root.write("proc/self/cgroup", "0::/\n");
  root.write("proc/self/mountinfo", version_2);
  root.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  CHECK(usable_cores(root.path(), {0, 1, 2, 3}, 4).count() == 1);
}

TEST_CASE("OMP_NUM_THREADS comes first") {
  UsableCores usable;
  usable.processors = usable.allowed = 6;
  usable.cores = {0, 1, 2, 3, 4, 5};
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    CHECK(chosen_threads(none, usable).count == 6);
    CHECK(chosen_threads(none, usable).reason == "of 6 processors");
  }
  for (const char* three : {"3", " 3 ", "3,2", "3 , 2,1"}) CHECK(chosen_threads(three, usable).count == 3);
  CHECK(chosen_threads("12", usable).count == 12);
  CHECK(chosen_threads("12", usable).reason == "OMP_NUM_THREADS");
  for (const std::string wrong : {"0", "-2", "many", "3.5", "4x", ",3", " ", "4097", "99999999999999999999"})
    CHECK(error_of([&] { chosen_threads(wrong.c_str(), usable); }) ==
          "OMP_NUM_THREADS must begin with a number of threads from 1 to 4096, not be '" + wrong + "'");
}

TEST_CASE("this process can use at least a core, and tells why not more") {
  const UsableCores here = usable_cores();
  CHECK(here.count() >= 1);
  CHECK(here.allowed <= here.processors);
  CHECK(here.cores.size() <= static_cast<std::size_t>(here.allowed));
  CHECK(here.reason().starts_with("of " + std::to_string(here.processors) + " processor"));
}
