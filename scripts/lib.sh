# What the scripts beside this file share: messages, stages with a bound, and the set-up of a bare machine.
# Sourced by bash, not run.
# shellcheck shell=bash

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
script=scripts/${0##*/}

# Rust's own installer puts cargo where a shell that is not a login shell does not look.
cargo_home=${CARGO_HOME:-${HOME:-/root}/.cargo}
case ":$PATH:" in
*":$cargo_home/bin:"*) ;;
*) PATH=$PATH:$cargo_home/bin ;;
esac
export PATH

say() { printf '%s\n' "$*"; }

# Ends the script: the request or the host is wrong.
refuse() {
    printf '%s: %s\n' "$script" "$1" >&2
    shift
    for line in "$@"; do printf '    %s\n' "$line" >&2; done
    exit 2
}

has() { command -v "$1" >/dev/null 2>&1; }

# duration SECONDS
duration() {
    if (($1 < 60)); then printf '%d s' "$1"; else printf '%d min %d s' $(($1 / 60)) $(($1 % 60)); fi
}

# Away from a terminal a bounded command gets a process group of its own, so that nothing of it outlives the limit. At a
# terminal it must stay in the foreground, or Ctrl-C would not reach it.
foreground=()
if [[ -t 0 ]]; then foreground=(--foreground); fi

# bounded LIMIT COMMAND...: ends the command, and all that it started, after LIMIT.
bounded() {
    local limit=$1
    shift
    timeout "${foreground[@]}" --kill-after=30 "$limit" "$@"
}

# stage NAME LIMIT COMMAND...: runs it, says how long it took, and returns what it returned.
stage() {
    local name=$1 limit=$2 start=$SECONDS status=0
    shift 2
    say "== $name: $*"
    bounded "$limit" "$@" || status=$?
    local took
    took=$(duration $((SECONDS - start)))
    case $status in
    0) say "== $name: ok, $took" ;;
    124 | 137) say "== $name: ended after its limit of $limit" ;;
    *) say "== $name: failed with exit code $status, $took" ;;
    esac
    return "$status"
}

# --- Set-up -----------------------------------------------------------------------------------------------------------

# The oldest Rust that builds this crate.
rust_needed() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$root/Cargo.toml"; }

# at_least VERSION WANTED
at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# The version of cargo here, or nothing: a proxy of rustup without a toolchain is no cargo.
cargo_version() { (cd "$root" && cargo --version 2>/dev/null) | cut -d ' ' -f 2 || true; }

# Does a C compiler link a program? Rust needs it as its linker.
links_c() {
    has cc || return 1
    local folder status=0
    folder=$(mktemp -d)
    printf 'int main(void) { return 0; }\n' | cc -x c -o "$folder/a.out" - 2>/dev/null || status=1
    rm -r "$folder"
    return "$status"
}

# The program that emulates this machine's processor, and the package it is in; nothing where no guest runs.
emulator() {
    case $(uname -m) in
    x86_64) echo qemu-system-x86_64 qemu-system-x86 ;;
    aarch64) echo qemu-system-aarch64 qemu-system-arm ;;
    esac
}

can_be_root() { [[ $(id -u) == 0 ]] || { has sudo && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; }; }

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

# quietly COMMAND...: shows what it wrote only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ $status != 0 ]]; then tail -n 20 "$log" >&2; fi
    rm "$log"
    return "$status"
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -y -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@"
}

lists_are_fresh=

# The package lists of the host, at most once per run; a second try where the first one fails.
apt_update() {
    [[ -z $lists_are_fresh ]] || return 0
    say "set-up: fetching the package lists (apt-get update)"
    if ! quietly apt_get update; then
        say "set-up: that failed; once more in 5 s"
        sleep 5
        quietly apt_get update || return 1
    fi
    lists_are_fresh=yes
}

# candidate PACKAGE: the version that would be installed, or nothing.
candidate() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p' | grep -v '^(none)$' || true; }

apt_install() {
    local package
    for package in "$@"; do
        if [[ -z $(candidate "$package") ]]; then
            apt_update || return 1
            break
        fi
    done
    quietly apt_get install --no-install-recommends "$@" && return 0
    # Lists that are some weeks old name files that the mirror no longer has.
    [[ -z $lists_are_fresh ]] || return 1
    say "set-up: that failed; once more with fresh package lists"
    apt_update && quietly apt_get install --no-install-recommends "$@"
}

# What is missing: packages, and a line for each that says why.
packages=()
reasons=()
need() {
    packages+=("$1")
    reasons+=("$2")
}

# Rust that is missing or too old. Adds the packages that bring it, or says what to do.
need_rust() {
    local version wanted
    wanted=$(rust_needed)
    version=$(cargo_version)
    if [[ -n $version ]]; then
        at_least "$version" "$wanted" && return 0
        if has rustup; then
            refuse "Rust $wanted or later is needed, and here is $version. Run this, then $script again:" "rustup update stable"
        fi
        refuse "Rust $wanted or later is needed, and here is $version: install Rust from its own site, then run $script again."
    fi
    if has rustup; then
        want_toolchain=yes
        return 0
    fi
    if has apt-get; then
        if [[ -z $(candidate rustup) ]] && can_be_root; then
            apt_update || refuse "the package lists could not be fetched; is this machine online?"
        fi
        local packaged
        packaged=$(candidate rustc)
        if [[ -n $(candidate rustup) ]]; then
            need rustup "Rust's installer: there is no cargo here"
            want_toolchain=yes
            return 0
        elif [[ -n $packaged ]] && at_least "${packaged%%[+~-]*}" "$wanted"; then
            need cargo "builds sweep: there is no Rust here"
            return 0
        fi
        if [[ -n $packaged ]]; then
            refuse "Rust $wanted or later is needed, and this distribution has ${packaged%%[+~-]*}: install Rust from its own site, then run $script again."
        fi
    fi
    refuse "Rust $wanted or later is needed, and there is none here: install Rust from its own site, then run $script again."
}

# rustup without a toolchain.
install_toolchain() {
    quietly rustup toolchain install stable --profile minimal || return 1
    if [[ -z $(cargo_version) ]]; then quietly rustup default stable; fi
}

# Installs the packages that were found to be missing, or says how to.
install_packages() {
    [[ ${#packages[@]} != 0 ]] || return 0
    local i
    if ! has apt-get; then
        for i in "${!packages[@]}"; do say "set-up: missing: ${packages[i]} as Debian calls it (${reasons[i]})"; done
        refuse "this is neither Debian nor Ubuntu: install what is missing by hand, then run $script again." \
            "Fedora: dnf install gcc ca-certificates qemu-system-x86-core dpkg chromium" \
            "Arch:   pacman -S gcc ca-certificates qemu-system-x86 dpkg chromium" \
            "(on arm64 qemu-system-aarch64-core and qemu-system-aarch64; elsewhere a C compiler and QEMU of whatever name)"
    fi
    if ! can_be_root; then
        for i in "${!packages[@]}"; do say "set-up: missing: ${packages[i]} (${reasons[i]})"; done
        refuse "installing needs root, and sudo is not usable here. As root, run this, then $script again:" \
            "apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
    fi
    for i in "${!packages[@]}"; do say "set-up: installing ${packages[i]} (${reasons[i]})"; done
    apt_install "${packages[@]}" ||
        refuse "that failed. By hand, as root:" \
            "apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
    installed=yes
}

formats() { cargo fmt --version >/dev/null 2>&1; }
lints() { cargo clippy --version >/dev/null 2>&1; }

# What formats and lints, where Rust is the distribution's own.
need_lints() {
    if has rustup || [[ -n $want_toolchain ]] || ! has apt-get; then return 0; fi
    formats || need rustfmt "formats Rust, for scripts/test"
    lints || need rust-clippy "lints Rust, for scripts/test"
}

# The same as components of rustup, which its minimal profile lacks. Names what cannot be had and goes on: the stage that
# needs it fails.
install_lints() {
    local component
    for component in rustfmt clippy; do
        case $component in
        rustfmt) formats && continue ;;
        clippy) lints && continue ;;
        esac
        if has rustup; then
            say "set-up: installing $component (a component of Rust, for scripts/test)"
            if quietly rustup component add "$component"; then
                installed=yes
                continue
            fi
        fi
        say "set-up: $component is missing: install it as this machine's Rust was, or run scripts/test --quick"
    done
}

# The test runner. Without it the tests run under cargo test.
install_nextest() {
    cargo nextest --version >/dev/null 2>&1 && return 0
    say "set-up: installing cargo-nextest (runs each test in a process of its own; is built here, once, 5 to 10 minutes)"
    # Unoptimised: it builds in half of the time and spends its own waiting for tests.
    if quietly bounded 30m cargo install --locked --debug cargo-nextest; then
        installed=yes
    else
        say "set-up: cargo-nextest could not be installed; the tests will run under cargo test"
    fi
}

# Programs that sweeps run as workloads, and the packages that they are in. libsctp is what Erlang's runtime loads.
need_programs() {
    has escript || need erlang-base "Erlang's runtime, which sweeps/exec_gen_sctp.toml runs"
    has_library libsctp.so.1 || need libsctp1 "what Erlang's runtime loads for SCTP"
    has iperf3 || need iperf3 "runs in sweeps/exec_iperf3.toml and beside sweep's own streams"
    has sockperf || need sockperf "runs in sweeps/exec_sockperf.toml and beside sweep's own echoes"
    has qperf || need qperf "runs beside sweep's own echoes over SCTP"
}

# has_library NAME: does the linker find it?
has_library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -F "$1" >/dev/null; }

# set_up WHAT...: of build, guests, programs, pages, lints and nextest.
set_up() {
    local what=" $* " name
    installed=
    want_toolchain=
    packages=()
    reasons=()
    need_rust
    if [[ $what == *" build "* ]]; then
        links_c || { need gcc "links Rust programs" && need libc6-dev "what a linked program starts with"; }
        [[ -e /etc/ssl/certs/ca-certificates.crt || -e /etc/pki/tls/certs/ca-bundle.crt || -n ${SSL_CERT_FILE:-} ]] ||
            need ca-certificates "lets cargo fetch dependencies"
    fi
    if [[ $what == *" guests "* ]]; then
        read -r name package <<<"$(emulator)" || true
        if [[ -z $name ]]; then
            say "set-up: no guests on $(uname -m): sweeps run on this machine's own kernel"
        else
            has "$name" || need "$package" "QEMU: runs kernels with SCTP, and virtual time"
            # These two unpack kernels, and are part of every Debian.
            has dpkg-deb || need dpkg "unpacks the kernels of guests"
            has tar || need tar "unpacks the kernels of guests"
        fi
    fi
    if [[ $what == *" programs "* ]]; then need_programs; fi
    if [[ $what == *" pages "* ]]; then
        has chromium || has chromium-browser || has google-chrome || need chromium "opens the page of a run in tests"
    fi
    if [[ $what == *" lints "* ]]; then need_lints; fi
    install_packages
    if [[ -n $want_toolchain && -z $(cargo_version) ]]; then
        say "set-up: installing the stable toolchain of Rust (by rustup)"
        install_toolchain || refuse "Rust's toolchain could not be fetched: install Rust from its own site, then run $script again."
        installed=yes
        need_rust
    fi
    if [[ $what == *" lints "* ]]; then install_lints; fi
    if [[ $what == *" nextest "* ]]; then install_nextest; fi
    [[ -n $installed ]] || say "set-up: nothing to install"
}
