#!/usr/bin/env bash
# Tests the part of a source build in libtorch_cuda, with PyTorch 2.6.0, without compiling all of it.
#
# Applies the series to the real tree (Debian's source package), and compiles the changed file of libtorch_cuda as
# that tree would, and our library against the same headers. Both are preloaded in front of the official wheel's
# libtorch_cuda.so, whose allocator is only used through exported functions. The tree's own C++ and Python allocator
# tests then run in the simulator: with stock, with the changed file alone, and with the library and all requests
# through the engine.
#
# Needs Debian with an archive that has the source package, g++, cargo, python3-venv, googletest and 8 GB
# in target/source-2.6.0, where everything is kept for the next run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
work=$root/target/source-2.6.0
tarball_sha256=099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff
mkdir -p "$work"

say() { printf '== %s\n' "$*"; }

# Fetches the tree with a private apt configuration; apt verifies the archive's signature.
fetch_tree() {
    local apt=$work/apt key=/usr/share/keyrings/debian-archive-keyring.gpg archive
    archive=$(sed -n 's/^URIs: \(.*\/debian\)\/*$/\1/p' /etc/apt/sources.list.d/*.sources | head -n 1)
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,source}
    echo "deb-src [signed-by=$key] ${archive:?no Debian archive among the package sources} trixie main" >"$apt/sources.list"
    local options=(-q -o "Dir::State=$apt/state" -o "Dir::Cache=$apt/cache"
        -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any)
    apt-get "${options[@]}" update >"$work/apt.log"
    (cd "$apt/source" && apt-get "${options[@]}" source --download-only --only-source pytorch >>"$work/apt.log")
    local tarball=$apt/source/pytorch_2.6.0+dfsg.orig.tar.xz
    echo "$tarball_sha256  $tarball" | sha256sum --check --quiet
    rm -rf "$work/stock.new"
    mkdir "$work/stock.new"
    tar -xJf "$tarball" -C "$work/stock.new" --strip-components=1
    mv "$work/stock.new" "$work/stock"
}

say "PyTorch 2.6.0's tree"
[[ -d $work/stock ]] || fetch_tree

say "the series"
rm -rf "$work/tree"
cp -a "$work/stock" "$work/tree"
for folder in 2.6.0 2.6.0-source source; do
    while read -r patch; do
        (cd "$work/tree" && GIT_CEILING_DIRECTORIES=$work git apply "$root/patches/$folder/$patch")
    done <"patches/$folder/series"
done
pinned=$(sed -n '/^version = "2.6.0"/,/^series/s/^patched_sha256 = "\(.*\)"/\1/p' patches/versions.toml)
echo "$pinned  $work/tree/aten/src/ATen/core/CachingHostAllocator.h" | sha256sum --check --quiet

say "the official wheel, and CUDA 12.4's headers"
if [[ ! -e $work/venv/whole ]]; then
    rm -rf "$work/venv"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q torch==2.6.0 'numpy<2.3' psutil expecttest hypothesis setuptools
    # 12.4's own cccl was yanked.
    "$work/venv/bin/pip" install -q --no-deps --target "$work/cuda" \
        nvidia-cuda-nvcc-cu12==12.4.131 nvidia-cuda-cccl-cu12==12.6.77
    touch "$work/venv/whole"
fi
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
lib=$site/torch/lib
cudart=$site/nvidia/cuda_runtime/lib/libcudart.so.12

# Include paths as in the tree: its own headers first, then the generated ones, from the wheel. The wheel of 2.6.0
# uses the old ABI of libstdc++.
old_abi=-D_GLIBCXX_USE_CXX11_ABI=0
includes=(-I"$work/tree/aten/src" -I"$work/tree" -isystem "$site/torch/include"
    -isystem "$site/torch/include/torch/csrc/api/include")
for folder in "$site"/nvidia/*/include "$work"/cuda/nvidia/*/include; do
    includes+=(-isystem "$folder")
done

say "libtorch_pinbuddy.so"
PINBUDDY_TORCH_INCLUDE=$work/tree/aten/src:$work/tree:$site/torch/include:$site/torch/include/torch/csrc/api/include \
    PINBUDDY_TORCH_LIB=$lib PINBUDDY_CUDART=$cudart \
    PINBUDDY_CUDA_INCLUDE=$site/nvidia/cuda_runtime/include:$work/cuda/nvidia/cuda_nvcc/include \
    PINBUDDY_FORK_VERSION=2.6.0+cu124.pinbuddy CXX=g++ CXXFLAGS=$old_abi \
    cargo build --quiet -p pinbuddy-bridge --features torch --profile wheel --locked --target-dir "$work/cargo"
# The path where our Python package expects it.
cp "$work/cargo/wheel/libpinbuddy_bridge.so" "$lib/libtorch_pinbuddy.so"

say "libtorch_cuda's aten/src/ATen/cuda/CachingHostAllocator.cpp"
g++ -std=gnu++17 -O2 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden $old_abi -w \
    -DTORCH_CUDA_BUILD_MAIN_LIB -DUSE_CUDA "${includes[@]}" -shared \
    "$work/tree/aten/src/ATen/cuda/CachingHostAllocator.cpp" -o "$work/libtorch_cuda_allocator.so" \
    -L"$lib" -ltorch_cpu -lc10_cuda -lc10 "$cudart" -Wl,-z,defs -Wl,-rpath,"$lib"

say "the tree's C++ test"
gtest=/usr/src/googletest/googletest
[[ -d $gtest ]] || {
    echo "no $gtest: apt-get install googletest" >&2
    exit 1
}
# Compiled with GoogleTest's sources, since the packaged library has the new ABI.
g++ -std=c++17 -O1 -w $old_abi -I$gtest -I$gtest/include "${includes[@]}" -include tests/upstream/report_served.h \
    "$work/tree/aten/src/ATen/test/cuda_caching_host_allocator_test.cpp" $gtest/src/gtest-all.cc \
    -o "$work/cpp_test" -L"$lib" -Wl,--no-as-needed -ltorch -ltorch_cuda -ltorch_cpu -lc10 -lc10_cuda "$cudart" \
    -pthread -Wl,-rpath,"$lib" -Wl,-rpath,"$(dirname "$cudart")" 2>"$work/link.log"

# The simulator's path, asked once, so that the runs do not call cargo.
# shellcheck disable=SC2016  # for the shell inside
simulator=$(cargo xtask sim -- bash -c 'echo "$LD_PRELOAD|$LD_LIBRARY_PATH"')

# Runs a command in the simulator, with libraries in front of the wheel's.
simulated() {
    local preload=$1
    shift
    env LD_PRELOAD="${simulator%|*}$preload" LD_LIBRARY_PATH="${simulator#*|}:$lib:$(dirname "$cudart")" \
        PINBUDDY_SIM_DEVICES=1 PINBUDDY_SIM_QUIET=1 PYTHONDONTWRITEBYTECODE=1 \
        BUDDY_THRESHOLD_MB=0 BUDDY_BLOCK_SIZE_MB=64 BUDDY_BLOCK_COUNT=2 "$@"
}

# The outcome of each test, one per line, and how many requests the engine served.
run() {
    local name=$1 preload=$2 package=$3 log=$work/$1.log report=$work/$1.report
    simulated "$preload" "$work/cpp_test" --gtest_color=no >"$log" 2>&1 || true
    rm -f "$report"
    PYTHONPATH=$work/tree/test$package simulated "$preload" "$work/venv/bin/python" tests/upstream/run_tests.py \
        "$work/tree/test/test_cuda.py" pinned_memory "$report" >>"$log" 2>&1 || true
    python3 - "$log" "$report" <<'PYTHON'
import json, re, sys
ended = {}
log, report = open(sys.argv[1]).read(), [json.loads(line) for line in open(sys.argv[2])]
for test in re.findall(r"^\[ RUN      \] (\S+)$", log, re.M):
    ended[test] = "passed" if re.search(rf"^\[       OK \] {re.escape(test)}\b", log, re.M) else "failed"
served = [json.loads(it)["engine"]["hits"] for it in re.findall(r"^pinbuddy stats: (.*)$", log, re.M)]
for line in report:
    if "served" in line:
        served.append(line["served"])
    elif ended.get(line["test"]) != "failed":
        ended[line["test"]] = line["outcome"]
for test, outcome in sorted(ended.items()):
    print(test, outcome)
print("served", *served)
PYTHON
}

for name in stock seam fork; do
    say "tests: $name"
    case $name in
    stock) run stock "" "" ;;
    seam) run seam ":$work/libtorch_cuda_allocator.so" "" ;;
    fork) run fork ":$lib/libtorch_pinbuddy.so:$work/libtorch_cuda_allocator.so" ":$root/cxx-bridge/python" ;;
    esac | tee "$work/$name.ended"
done

# What passes with the official wheel passes with ours; the engine has served in both languages; and
# tests have run at all.
for name in seam fork; do
    diff <(grep ' passed$' "$work/stock.ended") <(grep ' passed$' "$work/$name.ended")
done
[[ $(grep -c ' passed$' "$work/stock.ended") -ge 10 ]]
grep -qE '^served [1-9][0-9]* [1-9][0-9]*$' "$work/fork.ended"
say "$(grep -c ' passed$' "$work/fork.ended") tests pass with each, and the engine served them"
