"""Time limits that do not depend on how busy the machine is."""
import os, subprocess, time


def busy():
    """How many processes and threads want a processor, for each processor."""
    with open(os.environ.get("XTAPE_LOAD", "/proc/loadavg")) as load:
        return int(load.read().split()[3].split("/")[0]) / len(os.sched_getaffinity(0))


def ended(process, seconds):
    """The exit code; None if it was killed after so many seconds. Seconds on a busy machine count for less: a test does
    not fail because others take the processors."""
    while seconds > 0:
        before = time.time()
        try:
            return process.wait(timeout=min(seconds, 1))
        except subprocess.TimeoutExpired:
            seconds -= (time.time() - before) / max(1, busy())
    process.kill()
    process.wait()
    return None
