#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/packaging/packages.sh [--help] [WORK_FOLDER]
Makes each package of the library, and builds and runs a program with it.
  fetch    FetchContent with an archive of the tree and its hash
  cpm      the same with CPMAddPackage: by the CPM.cmake that REPRISE_CPM names, or else by a stand-in
  install  find_package with an installed copy, and add_subdirectory
  debian   libreprise-dev by CPack, unpacked into a folder, found by pkg-config and judged by lintian
  meson    a Meson project that finds the Debian package by pkg-config
  conan    the Conan 2 recipe and its test package
  vcpkg    the port, with stand-ins for the functions of vcpkg
  python   the sdist and the wheel of the Python package; the sdist is installed and passes the unit tests
The lines for CMake and Meson come from docs/install.md.
WORK_FOLDER (build/packages) is emptied first. A part whose tools are absent is skipped, and the exit status is 77.
Conan, Meson and Ninja are installed from PyPI into build/packages-venv, unless they are there. For the part python, pip
downloads what the build needs, and numpy. Nothing else is downloaded.
TEXT
}
case ${1:-} in
  --help) usage; exit ;;
  -*) echo "packages.sh: there is no option $1; --help lists them" >&2; exit 2 ;;
esac
cpm=${REPRISE_CPM:+$(realpath "$REPRISE_CPM")}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$root/build/packages}
if [ -d "$work" ] && [ -n "$(ls -A "$work")" ] && [ ! -e "$work/.packages" ]; then
  echo "packages.sh: $work has files of others; name an empty folder" >&2
  exit 2
fi
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
touch "$work/.packages"

# The tree as an archive has it, without build folders.
git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null -T - --transform 's,^,reprise/,' -czf "$work/reprise.tar.gz"
tar -C "$work" -xzf "$work/reprise.tar.gz"
tree=$work/reprise
cd "$work"

off=(-DREPRISE_BUILD_TESTS=OFF -DREPRISE_BUILD_BENCH=OFF -DREPRISE_BUILD_EXAMPLES=OFF -DREPRISE_BUILD_C=OFF)
skipped=()
has() {
  local part=$1 tool
  shift
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { skipped+=("$part: $tool is not found"); return 1; }
  done
}
# The code of a section of docs/install.md.
shown() {
  local text
  text=$(awk -v head="## $1" -v fence='```'"$2" '/^## / { inside = $0 == head } /^```/ { code = inside && $0 == fence; next } code' "$tree/docs/install.md")
  [ -n "$text" ] || { echo "docs/install.md has no code of the language $2 in the section $1" >&2; return 1; }
  printf '%s\n' "$text"
}
# Builds and runs the quickstart in a project that has this text after project().
try() {
  local folder=$1 text=$2
  shift 2
  mkdir -p "$folder"
  cp "$tree/examples/quickstart.cpp" "$folder"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(engine LANGUAGES CXX)' "$text" \
    'add_executable(engine quickstart.cpp)' 'target_link_libraries(engine PRIVATE reprise::reprise)' >"$folder/CMakeLists.txt"
  cmake -S "$folder" -B "$folder/build" "$@" >"$folder/log"
  cmake --build "$folder/build" >>"$folder/log"
  "$folder/build/engine" | grep 'tokens per pass'
}

# Before the tools of the other parts are in PATH, because a user does not have them.
if has python python3 g++; then
  mkdir python
  if ! { python3 -m venv python/builder && python/builder/bin/pip install --quiet build==1.6.1; } >python.log 2>&1; then
    skipped+=("python: build cannot be installed from PyPI (python.log)")
  else
    python/builder/bin/python -m build --outdir python "$tree" >>python.log 2>&1 || { tail -n 40 python.log; exit 1; }
    sdist=$(ls python/reprise_decoding-*.tar.gz)
    headers='include/reprise(_[a-z]+)?/.*\.(hpp|h|cpp)'
    package='examples/python/(CMakeLists\.txt|README\.md|reprise_decoding/(\w+\.py|py\.typed))'
    build='CMakeLists\.txt|LICENSE|PKG-INFO|pyproject\.toml|cmake/(c_interface\.(cmake|map)|compiled\.cmake|dependencies\.cmake|moved_headers\.(cmake|txt))'
    if tar -tzf "$sdist" | cut -d / -f 2- | grep -vxE "$build|$package|$headers"; then
      echo "python: the sdist has these files, but does not need them" >&2
      exit 1
    fi
    version=$(sed -n 's/.*version_string = "\(.*\)";/\1/p' "$tree/include/reprise/core/token.hpp")
    python3 -m zipfile -e python/reprise_decoding-"$version"-py3-none-*.whl python/wheel
    diff <(cd "$tree/examples/python/reprise_decoding" && printf '%s\n' * lib | sort) <(cd python/wheel/reprise_decoding && printf '%s\n' * | sort)
    test -e python/wheel/reprise_decoding/lib/libreprise-c.so
    # The module reprise is that of another project on PyPI, so examples/python/reprise.py must not replace it.
    diff <(printf '%s\n' reprise_decoding "reprise_decoding-$version.dist-info") <(ls python/wheel)
    cmp "$tree/LICENSE" "python/wheel/reprise_decoding-$version.dist-info/licenses/LICENSE"
    if grep -rl -e "$work" -e "${TMPDIR:-/tmp}/" python/wheel; then
      echo "python: these files of the wheel name a folder of this machine" >&2
      exit 1
    fi

    python3 -m venv python/empty
    # The limit is for processor time, because the network and other programs take time too.
    TIMEFORMAT='%R %U %S'
    { time python/empty/bin/pip install "$sdist" >>python.log 2>&1; } 2>python/time || { tail -n 40 python.log; exit 1; }
    read -r took user system <python/time
    echo "python: pip installs the sdist ($(du -k "$sdist" | cut -f 1) KB) in $took s, processor time $user + $system s"
    # From the folder /, so that Python cannot find the package of the tree.
    (
      cd /
      unset PYTHONPATH REPRISE_LIBRARY
      "$work/python/empty/bin/python" -c 'import reprise_decoding as r
print(r.__file__, "drafts", r.Drafter(cost=r.CostCurve.linear(0.02)).draft([1, 2, 3, 4] * 3))'
      REPRISE_INTERRUPTS=2000 "$work/python/empty/bin/python" -m unittest discover -s "$tree/examples/python/tests"
    ) 2>&1 | tee python/tests.log | tail -n 4
    grep -q "^$work/python/empty/.* drafts \[1 2 3 4" python/tests.log
    awk "BEGIN { exit $user + $system >= 60 }" || { echo "python: that is more than the limit, 60 s" >&2; exit 1; }
    echo "python: passed"
  fi
fi

# Conan, Meson and Ninja in the versions that were tried.
venv=$root/build/packages-venv
tools=(conan==2.34.0 meson==1.12.1 ninja==1.13.2)
installed=$(printf '%s\n' "${tools[@]}" | sha256sum | cut -c 1-16)
if [ ! -e "$venv/$installed" ] && command -v python3 >/dev/null; then
  if python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${tools[@]}"; then
    touch "$venv/$installed"
  else
    echo "${tools[*]} cannot be installed from PyPI" >&2
  fi
fi
export PATH=$venv/bin:$PATH

if has fetch cmake g++ sha256sum; then
  hash=$(sha256sum reprise.tar.gz | cut -d ' ' -f 1)
  archive=(-Dreprise_archive="file://$work/reprise.tar.gz" -Dreprise_sha256="$hash")
  try fetch "$(shown FetchContent cmake)" "${archive[@]}"
  if try refused "$(shown FetchContent cmake)" "${archive[@]}" -Dreprise_sha256="${hash//[0-9]/0}" 2>refused.log; then
    echo "fetch: an archive with another hash is accepted" >&2
    exit 1
  fi
  echo "fetch: passed"

  how="with $cpm"
  [ -n "$cpm" ] || { how="with a stand-in; CPM.cmake itself was not run"; cpm=$tree/tests/packaging/cpm_stand_in.cmake; }
  mkdir -p cpm/cmake
  cp "$cpm" cpm/cmake/CPM.cmake
  try cpm "$(shown CPM cmake)" "${archive[@]}"
  echo "cpm: passed $how"
fi

if has install cmake g++; then
  cmake -S "$tree" -B install-build "${off[@]}" >install.log
  cmake --install install-build --prefix "$work/prefix" >>install.log
  try install "$(shown 'An installed copy' cmake)" -DCMAKE_PREFIX_PATH="$work/prefix"
  echo "install: passed"
  mkdir third_party
  ln -s "$tree" third_party/reprise
  try subdirectory "$(shown 'A copy in your tree' cmake | sed "s,third_party/reprise,$work/& reprise,")"
  echo "subdirectory: passed"
fi

if has debian cmake cpack dpkg-deb g++ pkg-config; then
  export DEBFULLNAME="reprise test" DEBEMAIL=packages@reprise.test
  cmake -S "$tree" -B debian "${off[@]}" >debian.log
  (cd debian && cpack -G DEB >>../debian.log)
  package=$(ls debian/libreprise-dev_*_all.deb)
  dpkg-deb -x "$package" debian-root
  [ "$(dpkg-deb -f "$package" Architecture)" = all ]
  [ "$(ls debian-root/usr/share/doc)" = libreprise-dev ]
  grep -q common-licenses/Apache-2.0 debian-root/usr/share/doc/libreprise-dev/copyright
  if command -v lintian >/dev/null; then
    # The package is not part of Debian, so it has no changelog of Debian. The project states no year of a copyright.
    lintian --allow-root --fail-on error,warning --suppress-tags no-changelog,copyright-without-copyright-notice "$package" || { echo "debian: lintian has complaints" >&2; exit 1; }
  else
    echo "debian: lintian is not found, so the package was not judged"
  fi
  # Only the package's own folder is searched.
  export PKG_CONFIG_LIBDIR=$work/debian-root/usr/share/pkgconfig
  flags=$(pkg-config --cflags reprise)
  version=$(dpkg-deb -f "$package" Version)
  [ "$version" = "$(pkg-config --modversion reprise)" ] || { echo "debian: the versions differ" >&2; exit 1; }
  # shellcheck disable=SC2086
  g++ -std=c++20 $flags "$tree/tests/consumer/main.cpp" "$tree/tests/consumer/engine.cpp" -o debian-consumer
  ./debian-consumer
  echo "debian: passed, $(basename "$package")"

  if has meson meson ninja; then
    mkdir meson
    cp "$tree/examples/quickstart.cpp" meson
    shown Meson meson | sed 's/main.cpp/quickstart.cpp/' >meson/meson.build
    meson setup meson/build meson >meson.log
    meson compile -C meson/build >>meson.log
    meson/build/engine | grep 'tokens per pass'
    echo "meson: passed"
  fi
  unset PKG_CONFIG_LIBDIR
fi

if has conan conan cmake g++; then
  export CONAN_HOME=$work/conan
  conan profile detect >conan.log 2>&1
  conan create "$tree/cmake/packaging/conan" -s compiler.cppstd=20 --no-remote >>conan.log 2>&1 || { tail -n 40 conan.log; exit 1; }
  grep 'tokens per pass' conan.log
  if conan create "$tree/cmake/packaging/conan" -s compiler.cppstd=17 --no-remote >conan17.log 2>&1; then
    echo "conan: the recipe accepts C++17" >&2
    exit 1
  fi
  echo "conan: passed"
fi

if has vcpkg cmake g++; then
  mkdir vcpkg
  cmake -DPORT="$tree/cmake/packaging/vcpkg/reprise" -DFOLDER="$work/vcpkg" -P "$tree/tests/packaging/vcpkg_stand_in.cmake" >vcpkg.log
  test -e vcpkg/package/share/reprise/copyright
  try vcpkg-engine 'find_package(reprise CONFIG REQUIRED)' -DCMAKE_PREFIX_PATH="$work/vcpkg/package"
  echo "vcpkg: passed with stand-ins; vcpkg itself was not run"
fi

if [ ${#skipped[@]} -gt 0 ]; then
  printf 'not run: %s\n' "${skipped[@]}" >&2
  exit 77
fi
