#!/usr/bin/env bash
# Records the two traces in traces/ from scratch: a training run and a token-by-token generation.
#
# Needs Rust and Debian's PyTorch:
#   apt-get install --no-install-recommends python3-torch libopenblas0-pthread
# Writes traces/train.trace and traces/generate.trace, or the directory given as first argument.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-traces}
python=/usr/bin/python3 # Debian's, which sees Debian's PyTorch
threshold=4096

cargo build --release -p telltale-recorder
built=${CARGO_TARGET_DIR:-target}/release
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$out"

# Fails early where PyTorch is missing, and fills the file cache, so that the recordings do not
# begin with seconds of waiting for the disk.
"$python" tools/gpt_trace.py train --layers 1 --width 32 --heads 2 --context 32 --steps 1

versions="$("$python" -c 'import platform, torch
print(f"Python {platform.python_version()}, PyTorch {torch.__version__}")')"
packages="$(dpkg-query -W -f '${Package} ${Version}, ' python3-torch libopenblas0-pthread || true)"

record() {
    local name=$1
    shift
    TELLTALE_RECORD_FILE="$scratch/$name.raw" TELLTALE_RECORD_THRESHOLD=$threshold \
        LD_PRELOAD="$built/libtelltale_recorder.so" \
        "$python" tools/gpt_trace.py "$@" | tee "$scratch/$name.log"
    "$built/telltale-trace-convert" "$scratch/$name.raw" "$out/$name.trace" \
        --command "python3 tools/gpt_trace.py $*" \
        --made-with "tools/make_traces.sh on $(date -u +%F); $versions (${packages%, });\
 $(uname -m), $(nproc) CPUs; GPT with $(head -n 1 "$scratch/$name.log")"
    ls -l "$out/$name.trace"
}

record train train --layers 6 --width 256 --heads 8 --context 256 --batch 8 --steps 12
record generate generate --layers 6 --width 256 --heads 8 --context 512 --batch 8 --prompt 32
