"""The workers of a job yield the CPU to the service beside them.

Its driver does not: it renews a lease and may hold the indexers, so whoever waits for it would wait
for everything that goes before it. Beside three busy processes of the same terminal a driver that
yielded got 0.7 % of a core, and a reindex did not end within 15 minutes.
"""

import os
from pathlib import Path

# A tenth of the weight of a replica beside it (Linux), and all of a core that nobody else wants.
NICENESS = 10
THREADS = Path("/proc/self/task")


def yield_cpu() -> None:
    """Lower the priority of every thread of this process; what it starts inherits that.

    Linux keeps a niceness per thread and gives it to threads made later; elsewhere it belongs to
    the process.
    """
    threads = [int(entry.name) for entry in THREADS.iterdir()] if THREADS.is_dir() else [0]
    for thread in threads:
        try:
            if os.getpriority(os.PRIO_PROCESS, thread) < NICENESS:
                os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
        except ProcessLookupError:  # it ended meanwhile
            continue
