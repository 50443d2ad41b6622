#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds llama-server with the speculation type `reprise`.

    build.py FOLDER             takes the sources that llama-cpp-python 0.3.36 ships, from PyPI, and builds in FOLDER
    build.py FOLDER --sources S takes the sources in S: a folder of llama.cpp, which is copied

The build takes about ten minutes on two cores. FOLDER/llama-server is the program:

    FOLDER/llama-server -m MODEL.gguf --spec-type reprise --spec-reprise-history FOLDER/history

Only lines are inserted, next to lines that are looked for. Where one is missing, or there twice, nothing is changed.
A second run builds what has changed in reprise. The exit status is 3 if the sources cannot be downloaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "llama-cpp-python==0.3.36"
HERE = Path(__file__).resolve().parent
REPRISE = HERE.parent.parent


@dataclass(frozen=True)
class Insertion:
    """Text that is inserted after, or before, the only place of `file` with the text `at`."""

    file: str
    at: str
    text: str
    before: bool = False


INSERTIONS = [
    Insertion("common/common.h", "    COMMON_SPECULATIVE_TYPE_COUNT ", "    COMMON_SPECULATIVE_TYPE_REPRISE,\n", True),
    Insertion("common/common.h", "    common_params_speculative_ngram_cache ngram_cache;\n", "    std::string reprise_memory;\n"),
    Insertion(
        "common/speculative.cpp",
        '    {"ngram-cache",   COMMON_SPECULATIVE_TYPE_NGRAM_CACHE}',
        ',\n    {"reprise", COMMON_SPECULATIVE_TYPE_REPRISE}',
    ),
    Insertion("common/speculative.cpp", "struct common_speculative {\n", '#include "reprise_speculative.h"\n\n', True),
    Insertion(
        "common/speculative.cpp",
        "        case COMMON_SPECULATIVE_TYPE_NGRAM_CACHE:   return",
        '        case COMMON_SPECULATIVE_TYPE_REPRISE: return "reprise";\n',
        True,
    ),
    Insertion(
        "common/speculative.cpp",
        "            case COMMON_SPECULATIVE_TYPE_NGRAM_CACHE:\n",
        "            case COMMON_SPECULATIVE_TYPE_REPRISE:\n"
        "                n_max = std::max(n_max, common_speculative_impl_reprise::longest);\n"
        "                break;\n",
        True,
    ),
    Insertion("common/speculative.cpp", "static_assert(COMMON_SPECULATIVE_TYPE_COUNT == 11", " + 1"),
    Insertion(
        "common/speculative.cpp",
        "        add_config_if_enabled(COMMON_SPECULATIVE_TYPE_NGRAM_CACHE);\n",
        "        add_config_if_enabled(COMMON_SPECULATIVE_TYPE_REPRISE);\n",
    ),
    Insertion(
        "common/speculative.cpp",
        "            case COMMON_SPECULATIVE_TYPE_NGRAM_CACHE: {\n",
        "            case COMMON_SPECULATIVE_TYPE_REPRISE:\n"
        "                impls.push_back(std::make_unique<common_speculative_impl_reprise>(config.params, n_seq));\n"
        "                break;\n",
        True,
    ),
    Insertion(
        "common/arg.cpp",
        '    add_opt(common_arg(\n        {"-lcs", "--lookup-cache-static"}, "FNAME",\n',
        '    add_opt(common_arg(\n        {"--spec-reprise-history"}, "FILE",\n'
        '        "keep the texts of requests, and learned pass costs, over restarts (for --spec-type reprise)",\n'
        "        [](common_params & params, const std::string & value) {\n"
        "            params.speculative.reprise_memory = value;\n"
        "        }\n"
        "    ).set_examples({LLAMA_EXAMPLE_SERVER}));\n",
        True,
    ),
    Insertion(
        "common/CMakeLists.txt",
        "target_link_libraries(${TARGET} PUBLIC llama Threads::Threads)\n",
        "\n# reprise drafts in C++20, behind its C functions.\n"
        "add_library(reprise-c STATIC ${REPRISE}/include/reprise_c/reprise.cpp\n"
        "            ${REPRISE}/examples/llama_server/private_files.cpp)\n"
        "target_include_directories(reprise-c PUBLIC ${REPRISE}/include)\n"
        "set_target_properties(reprise-c PROPERTIES CXX_STANDARD 20 POSITION_INDEPENDENT_CODE ON)\n"
        "target_include_directories(${TARGET} PRIVATE ${REPRISE}/examples/llama_server)\n"
        "target_link_libraries(${TARGET} PRIVATE reprise-c)\n",
    ),
    Insertion(
        "tools/server/server-context.cpp",
        "        // try speculative decoding\n",
        "        params_base.speculative.draft.ctx_tgt = ctx_tgt;\n",
        True,
    ),
]


def fetched(folder: Path) -> Path:
    """The sources of llama.cpp, from PyPI. They are downloaded once."""
    known = "llama_cpp_python-*/vendor/llama.cpp"
    if not any(folder.glob(known)):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d"]
        if subprocess.run([*command, str(folder), PACKAGE]).returncode:
            print(f"build.py: pip cannot download {PACKAGE}: give a folder of llama.cpp with --sources", file=sys.stderr)
            sys.exit(3)
        [archive] = folder.glob("llama_cpp_python-*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return next(folder.glob(known))


def inserted(sources: Path) -> dict[Path, str]:
    """The files with the insertions. Changes nothing."""
    texts: dict[Path, str] = {}
    for insertion in INSERTIONS:
        file = sources / insertion.file
        if file not in texts:
            if not file.is_file():
                sys.exit(f"build.py: {file} is missing: these sources are not those of {PACKAGE}")
            texts[file] = file.read_text(encoding="utf-8")
        text = texts[file]
        both = insertion.text + insertion.at if insertion.before else insertion.at + insertion.text
        if both in text:
            sys.exit(f"build.py: {file} has lines of reprise already: give sources as they were shipped")
        if (count := text.count(insertion.at)) != 1:
            line = insertion.at.strip().splitlines()[0]
            sys.exit(f"build.py: {file} has the text '{line}' {count} times instead of once; nothing was changed")
        at = text.index(insertion.at) + (0 if insertion.before else len(insertion.at))
        texts[file] = text[:at] + insertion.text + text[at:]
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where everything is put; made if it is missing")
    parser.add_argument("--sources", type=Path, help="a folder of llama.cpp, instead of PyPI")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time (default: all cores)")
    parser.add_argument("--patch-only", action="store_true", help="insert the lines, and build nothing")
    options = parser.parse_args()
    origin = (options.sources or fetched(options.folder)).resolve()
    texts = inserted(origin)
    sources = options.folder / "llama.cpp"
    whole = sources / ".copied-from"  # written last
    if sources.exists() and (not whole.exists() or whole.read_text(encoding="utf-8") != str(origin)):
        sys.exit(f"build.py: {sources} is not a whole copy of {origin}: remove it, or give another folder")
    if not sources.exists():
        shutil.copytree(origin, sources)
        whole.write_text(str(origin), encoding="utf-8")
    for file, text in texts.items():
        copy = sources / file.relative_to(origin)
        if copy.read_text(encoding="utf-8") != text:  # so that a second run does not build it again
            copy.write_text(text, encoding="utf-8")
    if options.patch_only:
        return
    build = options.folder / "build"
    settings = ["-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_CURL=OFF", "-DBUILD_SHARED_LIBS=OFF", f"-DREPRISE={REPRISE}"]
    subprocess.run(["cmake", "-S", str(sources), "-B", str(build), *settings], check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "llama-server", "-j", str(options.jobs)], check=True)
    shutil.copy2(build / "bin/llama-server", options.folder / "llama-server")
    print(f"{options.folder / 'llama-server'} is ready")


if __name__ == "__main__":
    main()
