"""What the benchmarks of peers share."""
import time


def best_of(run, seconds):
    """The least milliseconds of run(), which is repeated for so many seconds, at least three times."""
    run()
    best, end, count = 1e9, time.perf_counter() + seconds, 0
    while count < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best, count = min(best, time.perf_counter() - start), count + 1
    return best * 1e3
