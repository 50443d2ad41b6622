# SPDX-License-Identifier: Apache-2.0
"""The Conan 2 recipe of reprise: `conan create cmake/packaging/conan -s compiler.cppstd=20`."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout


class RepriseRecipe(ConanFile):
    name = "reprise"
    description = "Header-only C++20 library for model-free speculative decoding"
    license = "Apache-2.0"
    topics = ("speculative-decoding", "llm", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._tree, "include", "reprise", "core", "token.hpp"))
        self.version = re.search(r'version_string = "([^"]+)"', text)[1]

    def export_sources(self):
        copy(self, "include/*", self._tree, self.export_sources_folder)
        copy(self, "LICENSE", self._tree, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
