#!/usr/bin/env python3
"""Prints the completions of runs as JSON: for each run, for each cell, its repeats in their order, in tenths of a microsecond."""

import json
import pathlib
import sys

runs = []
for folder in sys.argv[1:]:
    cells = {}
    for line in pathlib.Path(folder, "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        if not record["warmup"] and record["outcome"] == "measured":
            # More digits than noise has would only make the file longer.
            cells.setdefault(record["cell"], []).append((record["repeat"], record["completion_ns"] // 100))
    runs.append([[figure for _, figure in sorted(cells[cell])] for cell in sorted(cells)])
print("[\n" + ",\n".join("[\n" + ",\n".join(json.dumps(cell, separators=(",", ":")) for cell in run) + "\n]" for run in runs) + "\n]")
