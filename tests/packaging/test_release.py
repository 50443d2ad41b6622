# SPDX-License-Identifier: Apache-2.0
"""The refusals of .ci/release and the files that it writes, in a small repository of its own; no network."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = (
    ".ci/release",
    "cmake/packaging/public_surface.py",
    "cmake/packaging/vcpkg/reprise/vcpkg.json",
    "docs/reference.md",
    "examples/python/reprise_decoding/_library.py",
    "include/reprise/core/token.hpp",
    "tests/c/abi.txt",
)
CHANGELOG = "# Changelog\n\n## 9.3.0 (2031-02-03)\n\n* Something.\n\n## 9.2.0 (unreleased)\n\n* Older.\n"


@unittest.skipUnless(shutil.which("git"), "found no git")
class Release(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name) / "project"
        for name in FILES:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        # The user's settings, such as a hook or a signature for each tag, must not matter.
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        self.environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@b"}
        self.git("init", "-q")
        self.write("CHANGELOG.md", CHANGELOG)
        self.state_version("9.3.0")
        self.commit()

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.folder, env=self.environment, check=True, capture_output=True, text=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a")

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def replace(self, name, old, new):
        text = (self.folder / name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))

    def state_version(self, version):
        numbers = version.split(".")
        self.write("include/reprise/core/token.hpp",
                   "".join(f"inline constexpr int version_{part} = {number};\n"
                           for part, number in zip(("major", "minor", "patch"), numbers))
                   + f'inline constexpr std::string_view version_string = "{version}";\n')
        self.write("examples/python/reprise_decoding/_library.py", f'VERSION = "{version}"\n')
        self.write("cmake/packaging/vcpkg/reprise/vcpkg.json",
                   f'{{\n  "name": "reprise",\n  "version": "{version}",\n  "license": "Apache-2.0"\n}}\n')

    def release(self, *arguments):
        done = subprocess.run(["bash", ".ci/release", *arguments], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def refused(self, sentence, *arguments):
        status, output = self.release(*(arguments or ("--dry-run",)))
        self.assertEqual(status, 1, output)
        self.assertIn(sentence, output)
        self.assertIn("faults; nothing was written", output)

    def test_files_are_the_same_each_time(self):
        status, output = self.release("--dry-run")
        self.assertEqual(status, 0, output)
        self.assertFalse((self.folder / "build").exists())
        outputs = [pathlib.Path(self.temporary.name) / name for name in ("one", "two")]
        for folder in outputs:
            status, output = self.release("--output", str(folder))
            self.assertEqual(status, 0, output)
        self.assertIn('git tag -a v9.3.0 -m "reprise 9.3.0"', output)
        self.assertEqual(self.git("tag").stdout, "")
        sums = (outputs[0] / "SHA256SUMS").read_text()
        self.assertEqual(sums, (outputs[1] / "SHA256SUMS").read_text())
        for line in sums.splitlines():
            digest, name = line.split()
            self.assertEqual(hashlib.sha256((outputs[0] / name).read_bytes()).hexdigest(), digest)
        self.assertEqual(len(sums.splitlines()), len(list(outputs[0].iterdir())) - 1)
        with tarfile.open(outputs[0] / "reprise-9.3.0.tar.gz") as archive:
            self.assertIn("reprise-9.3.0/include/reprise/core/token.hpp", archive.getnames())
        names = (outputs[0] / "public-surface.txt").read_text().splitlines()
        self.assertIn("reprise/core/token.hpp Token", names)
        self.assertGreater(len(names), 300)
        status, output = self.release("--output", str(outputs[0]))
        self.assertEqual(status, 1)
        self.assertIn("is not empty", output)

    def test_a_python_package_that_cannot_be_built_leaves_no_files(self):
        """The step packages of .ci/full builds the real one; here, no virtual environment can be made."""
        self.write("pyproject.toml", "")
        self.commit()
        tools = pathlib.Path(self.temporary.name) / "tools"
        tools.mkdir()
        (tools / "python3").write_text(f'#!/bin/sh\n[ "$1" = -m ] && {{ echo "no $2 here"; exit 1; }}\nexec {sys.executable} "$@"\n')
        (tools / "python3").chmod(0o755)
        self.environment["PATH"] = f"{tools}{os.pathsep}{self.environment['PATH']}"
        status, output = self.release("--tag")
        self.assertEqual(status, 1, output)
        self.assertIn("no venv here\nthe sdist and the wheel cannot be built, so nothing was written", output)
        self.assertFalse((self.folder / "build").exists())
        self.assertEqual(self.git("tag").stdout, "")

    def test_tag(self):
        output_folder = str(pathlib.Path(self.temporary.name) / "out")
        status, output = self.release("--tag", "--output", output_folder)
        self.assertEqual(status, 0, output)
        self.assertEqual(self.git("tag").stdout, "v9.3.0\n")
        self.refused("the tag v9.3.0 exists; raise the version")

    def test_wrong_options(self):
        for arguments in (["--fast"], ["--output"], ["--dry-run", "--tag"]):
            self.assertEqual(self.release(*arguments)[0], 2)
        status, output = self.release("--help")
        self.assertEqual(status, 0)
        self.assertIn("Usage: .ci/release", output)

    def test_all_faults_are_listed_at_once(self):
        self.replace("examples/python/reprise_decoding/_library.py", "9.3.0", "9.2.9")
        self.replace("include/reprise/core/token.hpp", "version_patch = 0", "version_patch = 1")
        self.replace("cmake/packaging/vcpkg/reprise/vcpkg.json", "9.3.0", "9.2.8")
        self.write("CHANGELOG.md", CHANGELOG.replace("2031-02-03", "unreleased"))
        self.refused('_library.py states the version "9.2.9"; write 9.3.0', "--output", "out")
        self.refused('version_patch) states the version "9.3.1"')
        self.refused('vcpkg.json states the version "9.2.8"; write 9.3.0')
        self.refused('"## 9.3.0 (unreleased)"; write "## 9.3.0 (YYYY-MM-DD)"')
        self.refused("the working tree is not clean; commit or remove: CHANGELOG.md")
        self.refused("5 faults")
        self.assertFalse((self.folder / "out").exists())

    def test_the_changelog_has_a_section_with_an_entry(self):
        self.write("CHANGELOG.md", CHANGELOG.replace("9.3.0", "9.3.0.1"))
        self.refused('has no section "## 9.3.0"')
        self.write("CHANGELOG.md", CHANGELOG.replace("* Something.\n", ""))
        self.refused("lists nothing in the section of 9.3.0")

    def test_the_version_rises(self):
        self.git("tag", "v9.10.0")
        self.refused("9.3.0 is not above the last release, v9.10.0")

    def test_names_that_have_gone(self):
        self.git("tag", "v9.2.0")
        self.replace("docs/reference.md", "| `Token` |", "| `Symbol` |")
        self.commit()
        self.refused("Token of reprise/core/token.hpp has gone since v9.2.0; name it in CHANGELOG.md")
        self.replace("CHANGELOG.md", "* Something.", "* `Token` is now `Symbol`.")
        self.commit()
        status, output = self.release("--dry-run")
        self.assertEqual(status, 0, output)
        self.assertIn("since v9.2.0: 1 new, 1 gone", output)
        # A patch release removes no name, even with an entry.
        self.git("tag", "v9.2.9", "HEAD~2")
        self.state_version("9.2.10")
        self.replace("CHANGELOG.md", "9.3.0", "9.2.10")
        self.commit()
        self.refused("Token of reprise/core/token.hpp has gone since v9.2.9; keep it, or raise the minor version")

    def test_a_page_without_names(self):
        self.write("docs/reference.md", "# Reference\n")
        status, output = self.release("--dry-run")
        self.assertEqual(status, 1)
        self.assertIn("docs/reference.md: has no table of names", output)


class VersionOfTheProject(unittest.TestCase):
    def test_is_stated_alike_everywhere(self):
        """Uncommitted changes and an open changelog are no fault here; two versions are."""
        done = subprocess.run(["bash", ".ci/release", "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertIn("version ", done.stdout)
        self.assertNotIn("states the version", done.stderr)
        self.assertNotIn("has no section", done.stderr)


if __name__ == "__main__":
    unittest.main()
