"""Becomes another program that ends with its parent; run as a script, never imported.

A `preexec_fn` would run Python between fork and exec of a process with threads, and
uvloop's subprocesses cannot change the user. This script needs nothing but the standard
library: `python -I -S launcher.py PARENT UID GID PROGRAM ARGUMENT…`.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, uid, gid = (int(number) for number in arguments[:3])
    program = arguments[3]
    if os.getuid() != uid:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        # After the change of user, which would clear it. SIGINT is a fast shutdown to
        # PostgreSQL, and makes initdb remove what it began.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before the request, so no signal will ever come.
            sys.exit(1)
    os.execv(program, arguments[3:])  # noqa: S606  # No shell is wanted.


if __name__ == "__main__":
    main(sys.argv[1:])
