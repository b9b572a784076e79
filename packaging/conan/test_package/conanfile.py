import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Program(ConanFile):
    """Builds and runs a program that trains, one in C that records a GPT-2, and one that trains a GPT-2."""
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for name in ("core_program", "c_program", "train_gpt2"):
                self.run(os.path.join(self.cpp.build.bindir, name), env="conanrun")
