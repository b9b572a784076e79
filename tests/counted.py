"""What the Python suites share: counting of what holds, and the last line."""

passed = failed = skipped = 0


def holds(what, right, output=""):
    global passed, failed
    if right:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}\n{output[:2000]}")


def skips(why):
    """What this machine lacks for a check."""
    global skipped
    skipped += 1
    print(f"SKIPPED: {why}")


def report():
    """Prints the counts; true if something failed."""
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return failed > 0
