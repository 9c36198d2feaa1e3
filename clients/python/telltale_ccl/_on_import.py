"""Waits for a script to import `torch.distributed`.

It imports nothing until then: every Python of a job starts with it, also one that never imports PyTorch.
"""

import sys

MODULE = "torch.distributed"


def install_on_import():
    """Patches `torch.distributed` now, or as soon as it is imported."""
    if MODULE in sys.modules:
        _patch(sys.modules[MODULE])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _patch(module):
    from . import _patches

    _patches.patch(module)


class _Finder:
    """Finds nothing itself; has `torch.distributed` patched when it has been loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _patch(module)

        spec.loader.exec_module = exec_module
        return spec
