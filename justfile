# Conveniences. Everything here also works without just: CI and the README use scripts/ and cargo.

# Lists what there is.
default:
    @{{ just_executable() }} --list --unsorted

# From a clone to results: set-up, build, and a sweep.
demo *args:
    scripts/demo {{ args }}

# Everything that CI runs: lints, then tests.
test *args:
    scripts/test {{ args }}

# What sweep itself costs, and how it compares with other tools.
bench *args:
    cargo bench --locked {{ args }}

# sweep's own streams and echoes beside iperf3's, sockperf's and qperf's: the figures of docs/validation.md. Takes some ten minutes.
validation *args:
    scripts/validation {{ args }}

# How often `sweep gate` cries wolf, and how often it misses: the figures of docs/gate.md. Takes some ten minutes; with a number, so many gates, with a word, of that noise alone, and with a file that record.sh wrote, of that machine: just gate-simulation 1000 recorded FILE.
gate-simulation *args:
    cargo run --release --locked --quiet --example gate_simulation -- {{ args }}

# Clippy, and ShellCheck for the scripts.
lint:
    cargo clippy --all-targets --locked -- -D warnings
    shellcheck -x scripts/* .ci/run

# Formats the code.
fmt:
    cargo fmt

# Does it compile?
check:
    cargo check --all-targets --locked

# The documentation of the library, without that of its dependencies.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked

# Licences, sources and bans of the dependencies.
deny:
    cargo deny check bans licenses sources
