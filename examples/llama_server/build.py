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
        "common/speculative.cpp",
        "    if (impls.empty()) {\n",
        "    common_speculative_impl_reprise::adopt(impls);\n\n",
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
    # The settings of a request: a bound on its drafts, and a salt.
    Insertion(
        "common/speculative.h",
        "    llama_tokens * result;\n",
        "\n    std::string cache_salt = {}; // the parties whose text the drafts may come from\n",
    ),
    Insertion(
        "common/speculative.cpp",
        "            // a new draft has been sampled\n",
        "            if (dp.n_max == 0) {\n                result.clear();\n            }\n\n",
        True,
    ),
    Insertion(
        "tools/server/server-task.h",
        "    struct common_params_speculative speculative;\n",
        "    int32_t     draft_n_max = INT32_MAX; // drafted tokens of a pass\n"
        "    std::string cache_salt;\n",
    ),
    Insertion(
        "tools/server/server-schema.cpp",
        "    // TODO: to keep things simple, we disable speculative parameter adjustments for now\n",
        '    add((new field_num("speculative.n_max", params.draft_n_max))\n'
        "        ->set_hard_limits(0, INT32_MAX)\n"
        '        ->set_desc("Maximum number of drafted tokens in a pass of this request (0 = no drafts)"));\n\n'
        '    add((new field_str("cache_salt"))\n'
        '        ->set_desc("Draft only from text of requests with the same salt (for --spec-type reprise)")\n'
        "        ->set_handler([&](field_eval_context & ctx, const json & data) {\n"
        '            ctx.params.cache_salt = data.at("cache_salt").get<std::string>();\n'
        "            if (ctx.params.cache_salt.empty()) {\n"
        '                throw std::invalid_argument("must not be empty: give a name, or leave it out");\n'
        "            }\n"
        "        }));\n\n",
        True,
    ),
    Insertion(
        "tools/server/server-context.cpp",
        "                        drafting.push_back(&slot);\n",
        "                        auto & asked = common_speculative_get_draft_params(spec.get(), slot.id);\n"
        "                        asked.n_max      = std::min(n_draft_max, slot.task->params.draft_n_max);\n"
        "                        asked.cache_salt = slot.task->params.cache_salt;\n\n",
        True,
    ),
    # The answer for a request: its passes, and which tokens were drafted.
    Insertion(
        "tools/server/server-common.h",
        "    uint64_t n_draft_verif_steps = 0;\n",
        "    uint64_t n_gen_passes        = 0; // passes of the model that generated\n"
        "    std::vector<uint64_t> drafted;    // positions of accepted tokens, if the request wants the tokens\n",
    ),
    Insertion(
        "tools/server/server-common.h",
        "    uint64_t n_draft_verif_steps = 0; // Total draft token verification steps by the target model\n",
        "    uint64_t n_gen_passes        = 0; // Total passes of requests that generated\n",
    ),
    Insertion(
        "tools/server/server-common.cpp",
        '        {"predicted_per_second",   n_gen_tps()},\n',
        '        {"predicted_passes",       n_gen_passes},\n',
    ),
    Insertion(
        "tools/server/server-common.cpp",
        '        base["draft_n_accepted"] = n_draft_accepted;\n',
        "        if (!drafted.empty()) {\n"
        '            base["draft_accepted_at"] = drafted;\n'
        "        }\n",
    ),
    Insertion(
        "tools/server/server-context.cpp",
        "    void handle_last_sampled_token(server_batch & batch) {\n",
        "        stats.n_gen_passes += 1;\n",
    ),
    Insertion(
        "tools/server/server-context.cpp",
        "                result.prob         = 1.0f; // set later\n",
        "                if (i < n_accepted && slot.task->params.return_tokens) {\n"
        "                    slot.stats.drafted.push_back(slot.stats.n_gen);\n"
        "                }\n",
    ),
    Insertion(
        "tools/server/server-context.cpp",
        "        metrics.n_draft_verif_steps += slot.stats.n_draft_verif_steps;\n",
        "        metrics.n_gen_passes        += slot.stats.n_gen_passes;\n",
    ),
    Insertion(
        "tools/server/server-task.cpp",
        "            (double) metrics.n_draft_verif_steps\n        },\n",
        '        {\n            "predicted_passes_total",\n'
        '            "Passes of the model that generated, summed over requests",\n'
        "            (double) metrics.n_gen_passes\n        },\n",
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
