"""What `telltale agent` does in the Pythons of its workers, before their script begins.

Python imports this module by itself. A rank's store is opened only once rank 0 listens, and only if it is
that of its own job and epoch. And a Python that
`--warm` has started ahead is held until its rank is known: it imports what the script will import, as far as
that is installed (not what lies beside the script, which may look at its environment), then waits for the
environment, takes it over, and lets the script begin as if nothing had been.
It must not keep a script from running: whatever fails here is passed over.
"""

import os
import sys

MOST_BYTES = 1 << 20  # of an environment
RENDEZVOUS = "torch.distributed.rendezvous"
# Where nothing listens, PyTorch tries again after a second (torch/csrc/distributed/c10d/socket.cpp, 1.13).
# Here it is tried this often, for as long as a second counts, and for a part of the script's own timeout at
# most; afterwards it is left to PyTorch.
LOOK_EVERY = 0.01
LOOK_FOR = 10.0
PART_OF_TIMEOUT = 0.1
USUAL_TIMEOUT = 300.0  # the constructor's own
# `telltale train` starts Pythons ahead unasked, with what opens no device and reads no rank as it is imported: these and
# Python's own.
KNOWN = ("numpy", "pandas", "PIL", "scipy", "torch", "torchaudio", "torchvision", "tqdm", "yaml")
# Where rank 0 writes whose the store is, and how long another rank looks for that.
OWNER = "telltale/owner"
# And which of the jobs with this name it is of, where its agent says so.
IDENTITY = "telltale/job"
OWNER_WITHIN = 5.0


def script_and_module(arguments):
    """The script or module that this interpreter runs."""
    words = iter(arguments[1:])
    for word in words:
        if word == "-m":
            return None, next(words, None)
        if word.startswith("-m"):
            return None, word[2:]
        if word == "-c" or word == "-":
            return None, None
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            next(words, None)
        elif not word.startswith("-"):
            return word, None
    return None, None


def imports(path):
    """The modules that a script imports at its top, whether or not inside `try` or `if`."""
    import ast
    import itertools

    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    waiting, names = list(tree.body), []
    if only_known():
        waiting = list(itertools.takewhile(leaves_environment, waiting))
    for node in waiting:
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
            # What is taken from a package may be a module of it.
            names.extend(node.module + "." + alias.name for alias in node.names)
        elif isinstance(node, (ast.Try, ast.If)):
            waiting.extend(node.body)
    return names


def only_known():
    return os.environ.get("TELLTALE_WARM_IMPORTS") == "known"


def leaves_environment(statement):
    """Whether what follows a statement is imported in the environment that Python was started in: some libraries read
    it once, when they are loaded."""
    import ast

    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return True
    named = (getattr(node, "attr", getattr(node, "id", None)) for node in ast.walk(statement))
    return not any(name in ("environ", "environb", "putenv") for name in named)


def is_known(name):
    """Whether a module may be imported before its rank is known, whatever the script."""
    import importlib.util

    package = name.partition(".")[0]
    if package in KNOWN:
        return True
    origin = getattr(importlib.util.find_spec(package), "origin", None)
    own = os.path.dirname(os.__file__)
    places = ("site-packages", "dist-packages")
    is_package = any(os.sep + place + os.sep in (origin or "") for place in places)
    return origin in ("built-in", "frozen") or (bool(origin) and is_below(origin, own) and not is_package)


def is_installed(name, project):
    """Whether a module belongs to Python or was installed, also by a `.pth` file, and is not part of the
    script's own project, whose directory this is."""
    import importlib.util

    spec = importlib.util.find_spec(name.partition(".")[0])
    if spec is None or spec.origin in (None, "built-in", "frozen"):
        return spec is not None and spec.origin is not None
    places = ("site-packages", "dist-packages")
    is_package = any(os.sep + place + os.sep in spec.origin for place in places)
    if is_package or is_below(spec.origin, os.path.dirname(os.__file__)):
        return True
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep) + [os.getcwd()]
    own = [os.path.realpath(place) for place in own if place]
    places = [os.path.realpath(place) for place in sys.path if place]
    return any(
        is_below(os.path.realpath(spec.origin), place)
        and not is_below(place, project)
        and not is_below(project, place)
        for place in places
        if place not in own
    )


def is_below(path, directory):
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def warm_up():
    """Imports what the script will import."""
    import importlib
    import importlib.util

    script, module = script_and_module(getattr(sys, "orig_argv", None) or command_line())
    project = os.path.dirname(os.path.realpath(script)) if script else os.path.realpath(os.getcwd())
    if module is not None:
        if is_installed(module, project):
            return
        script = getattr(importlib.util.find_spec(module), "origin", None)
    for name in imports(script) if script else []:
        try:
            if is_installed(name, project) and (is_known(name) or not only_known()):
                importlib.import_module(name)
        except BaseException:  # the script will meet it again, and may know what to do
            pass


def command_line():
    """The arguments, for Python before 3.10."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def environment(gate):
    """Waits for the environment: its length on a line, then names and values, each with a zero byte
    behind it."""
    received, length = b"", None
    while length is None or len(received) < length:
        piece = os.read(gate, 65536)
        if not piece or len(received) > MOST_BYTES:
            # The agent does not need this process any more.
            os._exit(0)
        received += piece
        if length is None and b"\n" in received:
            head, _, received = received.partition(b"\n")
            length = int(head)
    words = received.split(b"\0")[:-1]
    return dict(zip(words[0::2], words[1::2]))


def pass_the_gate():
    gate = int(os.environ.pop("TELLTALE_GATE"))
    os.set_inheritable(gate, False)
    try:
        warm_up()
    except BaseException:
        pass
    os.write(gate, b"warm\n")
    os.environb.update(environment(gate))
    os.close(gate)


class RendezvousFinder:
    """Finds nothing itself; has PyTorch's rendezvous open its stores by `awaited`."""

    def find_spec(self, name, path=None, target=None):
        if name != RENDEZVOUS:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        others = [finder for finder in others if hasattr(finder, "find_spec")]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                if hasattr(module, "TCPStore"):
                    module.TCPStore = awaited(module.TCPStore)

            spec.loader.exec_module = exec_module
        return spec


def awaited(store):
    """The same store; a rank that does not hold it waits until it listens, and asks whose it is."""

    def opened(host_name, port, world_size=None, is_master=False, *rest, **named):
        if not is_master:
            try:
                timeout = rest[0] if rest else named.get("timeout")
                wait_for(host_name, port, timeout.total_seconds() if timeout else USUAL_TIMEOUT)
            except Exception:
                pass
        # Two stores of one process share a server if configured so, and only then.
        if owner() and len(rest) < 2 and named.get("multi_tenant"):
            # Before this rank is counted as one of the store's. It fails as the next would.
            alone = dict(named, wait_for_workers=False)
            first = store(host_name, port, world_size, is_master, *rest, **alone)
            if is_master:
                claim(first)
                found, own = None, None
            else:
                found, own = owners(first)
            if found != own:
                raise RuntimeError(
                    "the store at %s port %s is that of %s, and this rank is of %s; is another job's rank 0 there?"
                    % (host_name, port, found, own)
                )
        return store(host_name, port, world_size, is_master, *rest, **named)

    return opened


def owner():
    """The job, epoch and size that a store is for; nothing without an agent."""
    names = ("TORCHELASTIC_RUN_ID", "TELLTALE_EPOCH", "WORLD_SIZE")
    values = [os.environ.get(name) for name in names]
    return "job %s, epoch %s, %s ranks" % tuple(values) if all(values) else None


def identity():
    """Which of the jobs with this name this is; nothing without an agent."""
    return os.environ.get("TELLTALE_JOB_IDENTITY")


def claim(store):
    """Says whose a store is. The server lives on in the one that is opened next."""
    try:
        # Who finds an owner finds this as well.
        if identity():
            store.set(IDENTITY, identity())
        store.set(OWNER, owner())
    except Exception:
        pass


def owners(store):
    """Whose a store is, and whose this rank; the same where rank 0 does not say."""
    found = written(store, OWNER)
    if found == owner() and identity():
        job = written(store, IDENTITY)
        if job:
            return tuple("%s, identity %s" % (found, one) for one in (job, identity()))
    return found or owner(), owner()


def written(store, name):
    """What rank 0 has written there; nothing where it writes nothing."""
    import datetime

    try:
        # A store that can say so at once need not be waited for: the owner is written last.
        if name == IDENTITY and hasattr(store, "check") and not store.check([name]):
            return None
        store.wait([name], datetime.timedelta(seconds=OWNER_WITHIN))
        return store.get(name).decode()
    except Exception:
        return None


def wait_for(host_name, port, timeout):
    """Waits until a server listens there, or so long that it makes no difference any more."""
    import socket
    import time

    end = time.monotonic() + min(LOOK_FOR, timeout * PART_OF_TIMEOUT)
    while time.monotonic() < end:
        try:
            socket.create_connection((host_name, port), timeout=1).close()
            return
        except ConnectionRefusedError:
            time.sleep(LOOK_EVERY)
        except OSError:
            # A name that is not known yet, or a host that is not there: not to be asked so often.
            time.sleep(0.2)


def step_aside():
    """Takes this module off the path: what this process starts is not to find it."""
    here = os.path.dirname(os.path.abspath(__file__))
    # An empty place is the directory that Python is started in, and stays.
    rest = os.environ.pop("PYTHONPATH", here).split(os.pathsep)
    rest = [place for place in rest if not place or os.path.abspath(place) != here]
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]


def next_sitecustomize():
    """Runs the `sitecustomize` that this one stands in front of, if there is one."""
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        # Python 2 does not say which.
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        # Python looks for the module that it has just run.
        sys.modules["sitecustomize"] = this


step_aside()
if sys.version_info >= (3, 4):
    sys.meta_path.insert(0, RendezvousFinder())
if "TELLTALE_GATE" in os.environ:
    pass_the_gate()
os.environ.pop("TELLTALE_WARM_IMPORTS", None)
next_sitecustomize()
