#!/usr/bin/env bash
# Runs tests on an emulated ARM processor, as root on Debian or Ubuntu on x86: tools/on_emulated_arm.sh FOLDER [TESTS...]
# FOLDER gets Debian for arm64, the packages and a copy of this checkout (3 GB), once; and a log for each of TESTS.
# Emulation is 10 to 50 times as slow as the processor below it; tests that start processes are left out. Before the first use:
#   apt-get install qemu-user-static binfmt-support debootstrap
# and, in a container: mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && update-binfmts --enable qemu-aarch64
set -euo pipefail
checkout=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
debian=$folder/debian
packages=$debian/packages
python=${PYTHON:-python3.11}   # of this machine, to download with; Debian 12 has the same version

if [ ! -e "$folder/ready" ]; then
    rm -rf "$debian"
    debootstrap --foreign --arch arm64 --variant minbase --include python3,python3-jsonnet,libgomp1,libstdc++6,git bookworm "$debian"
    # Unpacked by this machine: the scripts of the packages, which would be emulated, are not needed.
    for package in "$debian"/var/cache/apt/archives/*.deb; do dpkg-deb --extract "$package" "$debian"; done
    mkdir -p "$debian/checkout"
    git -C "$checkout" archive HEAD | tar -x -C "$debian/checkout"
    # torch's requirements would be those for x86, so they are named.
    pip=("$python" -m pip install --quiet --target "$packages")
    arm=(--platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64
         --python-version 3.11 --only-binary :all:)
    "${pip[@]}" "${arm[@]}" --no-deps "torch==${TORCH:-2.9.1}" sympy mpmath networkx jinja2 markupsafe fsspec filelock
    "$python" - "$checkout/setup.cfg" > "$folder/requirements.txt" <<'LINES'
import sys
from configparser import ConfigParser

setup = ConfigParser()
setup.read(sys.argv[1])
lines = setup["options"]["install_requires"] + setup["options.extras_require"]["allennlp"]
# word2number is published as source only, and needs no compiler; jsonnet would, and Debian has it.
left_out = ("torch>", "word2number", "jsonnet", "#")
print("\n".join(line for line in lines.splitlines() if not line.startswith(left_out)))
print("pyarrow\npytest\nhypothesis\nfastapi\nhttpx\nprometheus-client\nuvicorn")
LINES
    "${pip[@]}" "${arm[@]}" --upgrade -r "$folder/requirements.txt"
    "${pip[@]}" --no-deps word2number allennlp==2.10.1 allennlp-models==2.10.1 'cached-path>=1.8.10'
    # For their entry points; the code is the checkout's, which is first in PYTHONPATH.
    "${pip[@]}" --no-deps "$debian/checkout" "$debian/checkout/allennlp_today"
    rm -rf "$debian/checkout/build" "$debian/checkout/elmo_tasks.egg-info"
    # Not only in PYTHONPATH, which some tests set for the processes that they start.
    echo /packages > "$debian/usr/lib/python3/dist-packages/packages.pth"
    touch "$folder/ready"
fi

mkdir -p "$debian/proc" "$debian/dev" "$debian/tmp"
mountpoint -q "$debian/proc" || mount -t proc proc "$debian/proc"
mountpoint -q "$debian/dev" || mount --bind /dev "$debian/dev"
trap 'umount "$debian/proc" "$debian/dev"' EXIT

emulated() {
    # qemu's default processor has SVE and pointer authentication, with which an import of torch takes 10 minutes, not 1.
    chroot "$debian" /usr/bin/env -i QEMU_CPU=cortex-a76 HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 OMP_NUM_THREADS=1 PYTHONNOUSERSITE=1 \
        PYTHONPATH=/checkout:/checkout/allennlp_today "$@"
}

emulated /usr/bin/python3 -c 'import platform, torch; print(platform.machine(), torch.__version__, flush=True)'
for tests in "${@:-tests/text tests/vectors tests/predictors/trained_task_test.py tests/bilm tests/spacy}"; do
    log=$folder/$(echo "$tests" | tr -c '[:alnum:]\n' _).log
    started=$SECONDS
    # shellcheck disable=SC2086  # Several words are several paths.
    emulated sh -c 'cd /checkout && exec python3 -m pytest -v -p no:cacheprovider -m "not weekly and not slow" "$@"' sh $tests > "$log" 2>&1 || true
    echo "$tests: $(tail -n 1 "$log") ($((SECONDS - started)) s)"
done
