"""The package is imported, and what Unix alone has is replaced or refused, on a system without it."""

import subprocess
import sys

# What Windows lacks. The modules are hidden from the package alone: other packages have versions of their own for it.
PROBE = """
import importlib, importlib.util, os, pkgutil, signal, sys

def load_all():
    import sparcets
    found = []
    for one in pkgutil.walk_packages(sparcets.__path__, "sparcets."):
        if one.name.endswith("__main__"):
            continue
        importlib.import_module(one.name)
        found.append(one.name)
    return found

load_all()  # loads other packages
for name in [name for name in sys.modules if name.split(".")[0] == "sparcets"]:
    del sys.modules[name]

class Hidden:
    names = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "crypt", "readline"}

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in Hidden.names:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
for module, names in {
    os: "fork getuid geteuid getpgid setsid killpg nice sched_getaffinity getloadavg sysconf uname",
    signal: "SIGALRM SIGKILL SIGHUP SIGUSR1 setitimer alarm pthread_sigmask pthread_kill",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
print(len(load_all()))
"""


def test_every_module_is_imported_without_what_unix_alone_has():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100
