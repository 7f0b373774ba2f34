"""The step of the build that compiles the core, for hatchling."""

import os
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import build_core


class CoreBuildHook(BuildHookInterface):
    """Compiles for the platform of this machine, or for that of ``SKHORSESHOE_PLATFORM``."""

    def initialize(self, version, build_data):
        if version == "editable":
            build_core.refresh()
            return
        name = os.environ.get("SKHORSESHOE_PLATFORM") or build_core.here()
        self.folder = tempfile.TemporaryDirectory()
        made = build_core.build(name, Path(self.folder.name))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{build_core.PLATFORMS[name][1]}"
        build_data["force_include"] |= {str(path): f"{build_core.HOME}/{path.name}" for path in made}

    def finalize(self, version, build_data, artifact_path):
        if version != "editable":
            self.folder.cleanup()
