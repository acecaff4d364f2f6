#!/usr/bin/env bash
# Records how native repeats vary on this machine, for gate_simulation: the completions of six runs of 40 TCP echo cells, 240 repeats of
# each, one after the other. Takes some six minutes, in which nothing else should run.
#
#     examples/gate_simulation/record.sh [SWEEP PROGRAM] > examples/gate_simulation/native_noise.json
set -euo pipefail
sweep=$(realpath "${1:-target/release/sweep}")
root=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for run in 1 2 3 4 5 6; do
    "$sweep" run "$root/sweeps/tcp_echo.toml" --set rcvbuf=64KiB,default --set sndbuf=default \
        --set chunk_count=1,8,32,128,512 --set chunk_size=64,1KiB --repeat 240 --no-plot --quiet --out "$folder/$run" >/dev/null
done
python3 "$root/examples/gate_simulation/compact.py" "$folder"/*
