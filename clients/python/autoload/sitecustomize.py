"""Installs `telltale_ccl` as soon as a script imports `torch.distributed`.

Python imports this module by itself where its directory is on `PYTHONPATH`. It does nothing unless
`TELLTALE_LOG_CCL` says where to post, and it never keeps a script from running. Another
`sitecustomize` further down the path is run as if this one were not there.
"""

import os
import sys


def install():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("TELLTALE_LOG_CCL"):
        try:
            import telltale_ccl
        except ImportError:
            # It lies beside this directory unless it was installed.
            sys.path.append(os.path.dirname(here))
            import telltale_ccl
        telltale_ccl.install_on_import()
    return here


def next_sitecustomize(here):
    """Runs the `sitecustomize` that this one stands in front of, if there is one."""
    import importlib.machinery

    # Only what is behind: another copy of this may be, and must not find the first again.
    places = [os.path.abspath(place or ".") for place in sys.path]
    path = sys.path[places.index(here) + 1 :] if here in places else []
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        import importlib.util

        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


try:
    _here = install()
except Exception:  # a job goes on without us
    _here = os.path.dirname(os.path.abspath(__file__))
next_sitecustomize(_here)
