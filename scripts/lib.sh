# shellcheck shell=bash
# What the programs of this directory share. Source it, do not run it.

set -euo pipefail

# Tools such as mke2fs lie outside an ordinary user's path.
PATH=$PATH:/usr/sbin:/sbin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Read by the programs that source this file.
export root

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# retry COMMAND...: tries three times, because package mirrors have bad moments.
retry() {
    local pause
    for pause in 2 5 0; do
        if "$@"; then return 0; fi
        if ((pause > 0)); then
            say "failed, trying again in $pause s: $*"
            sleep "$pause"
        fi
    done
    return 1
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >&2
}

apt_update_and() {
    apt update && "$@"
}

# ensure_packages PACKAGE...: installs the Debian packages that are missing, and touches nothing when none is.
ensure_packages() {
    local package missing=()
    for package in "$@"; do
        if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    if ((${#missing[@]} == 0)); then return 0; fi
    say "installing ${missing[*]}"
    retry apt_update_and apt install -y --no-install-recommends "${missing[@]}" \
        || die "cannot install ${missing[*]}"
}

# ensure_rust: the compiler comes from the user; the linker and the static C library from Debian.
ensure_rust() {
    command -v cargo >/dev/null || die "cargo is missing: install Rust 1.91 or newer, for example with https://rustup.rs"
    ensure_packages gcc libc6-dev
}

# executables CARGO-ARGUMENT...: builds, and prints the path of each program that came of it.
executables() {
    (cd "$root" && cargo "$@" --quiet --message-format json-render-diagnostics) \
        | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# fetch_from_debian SUITE PACKAGE FILE PLACE: puts one file of a package at a place, unless it is there, and
# installs nothing. apt keeps its lists of that suite apart from those of this machine.
fetch_from_debian() {
    local suite=$1 package=$2 file=$3 place=$4 apt_dir
    if [[ -x $place ]]; then return 0; fi
    say "fetching $package of Debian $suite"
    apt_dir=$(mktemp -d)
    mkdir -p "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial" "${place%/*}"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
        >"$apt_dir/sources.list"
    local own=(
        -o "Dir::Etc::sourcelist=$apt_dir/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$apt_dir/lists" -o "Dir::Cache=$apt_dir/cache"
        -o APT::Get::List-Cleanup=0 -o APT::Sandbox::User=root
    )
    (cd "$apt_dir" && retry apt-get -qq "${own[@]}" update >&2 \
        && retry apt-get -qq "${own[@]}" download "$package/$suite" >&2 && dpkg-deb -x ./*.deb "$apt_dir/package") \
        || die "cannot fetch $package of Debian $suite with apt-get"
    # Beside its place first: a fetch that was broken off leaves nothing that looks whole.
    mv "$apt_dir/package/$file" "$place.new"
    mv "$place.new" "$place"
    rm -rf "$apt_dir"
}
