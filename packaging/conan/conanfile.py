"""A Conan package of the libraries, the program and the models: conan create packaging/conan --build=missing

Conan's own index lacks Random123 and sentencepiece, so these come from the system. With -o "&:system=True", all libraries do."""
import os
import re
from pathlib import Path

from conan import ConanFile
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain
from conan.tools.system.package_manager import Apt

FROM_SYSTEM = ["librandom123-dev", "libsentencepiece-dev"]
# The packages of the index, and those of Debian that take their place.
REQUIRED = {
    "cli11/[>=2.1 <3]": "libcli11-dev",
    "libjpeg-turbo/[>=2.1 <4]": "libjpeg-dev",
    "libpng/[>=1.6 <2]": "libpng-dev",
    "nlohmann_json/[>=3.11 <4]": "nlohmann-json3-dev",
    "pcre2/[>=10.40 <11]": "libpcre2-dev",
    "protozero/[>=1.7 <2]": "libprotozero-dev",
    "utf8proc/[>=2.8 <3]": "libutf8proc-dev",
    "xsimd/[>=8.1 <14]": "libxsimd-dev",
    "xtensor/[>=0.24 <0.28]": "libxtensor-dev",
    "xxhash/[>=0.8.1 <0.9]": "libxxhash-dev",
    "zlib/[>=1.2.11 <2]": "zlib1g-dev",
}
# The libraries, and what each links.
LIBRARIES = {"core": [], "xtape": ["core"], "onnx": ["core"], "gguf": ["xtape"], "c": []}


class Xtape(ConanFile):
    name = "xtape"
    license = "MIT"
    description = "Trains and runs neural networks on CPUs: automatic differentiation on an explicit tape"
    topics = ("automatic-differentiation", "neural-networks")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "system": [True, False], "native": [True, False]}
    default_options = {"shared": False, "system": False, "native": False}

    def set_version(self):
        self.version = re.search(r"version: '([^']*)'", load(self, os.path.join(self.recipe_folder, "../../meson.build")))[1]

    def export_sources(self):
        root = str(Path(self.recipe_folder).resolve().parents[1])
        for pattern in ("meson*", "LICENSE", "include/*", "src/*", "models/*", "packaging/*", "examples/*"):
            copy(self, pattern, root, self.export_sources_folder, excludes=("build*", "*/__pycache__/*"))

    def system_requirements(self):
        Apt(self).check([*FROM_SYSTEM, *(REQUIRED.values() if self.options.system else [])])

    def requirements(self):
        if not self.options.system:
            for reference in REQUIRED:  # programs that use xtape.hpp include xtensor
                self.requires(reference, transitive_headers=reference.startswith("xtensor/"))

    def layout(self):
        basic_layout(self)

    def generate(self):
        PkgConfigDeps(self).generate()
        toolchain = MesonToolchain(self)
        toolchain.cpp_std = "c++20"  # a profile says what its programs are compiled as
        toolchain.project_options |= {"tests": False, "mpi": "disabled", "werror": False, "native": bool(self.options.native)}
        toolchain.project_options |= {"onnx": "enabled", "gguf": "enabled", "c": "enabled"}
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        Meson(self).install()

    def package_info(self):
        for name, linked in LIBRARIES.items():
            library = self.cpp_info.components[name]
            library.libs = ["xtape" if name == "xtape" else f"xtape-{name}"]
            library.requires = list(linked)
            library.system_libs = ["pthread", "m", "dl"]
            library.set_property("cmake_target_name", f"xtape::{name}")
            library.set_property("pkg_config_name", library.libs[0])
        whole = self.cpp_info.components["xtape"]
        whole.system_libs += ["sentencepiece", "sentencepiece_train"]
        if self.options.system:
            whole.system_libs += ["jpeg", "pcre2-8", "png", "utf8proc", "z"]
        else:
            whole.requires += ["libjpeg-turbo::jpeg", "libpng::libpng", "pcre2::pcre2-8", "utf8proc::utf8proc", "xtensor::xtensor", "zlib::zlib"]
            # Used inside only.
            whole.requires += ["cli11::cli11", "nlohmann_json::nlohmann_json", "protozero::protozero", "xsimd::xsimd", "xxhash::xxhash"]
        self.runenv_info.define_path("XTAPE_MODELS", os.path.join(self.package_folder, "share/xtape/models"))
