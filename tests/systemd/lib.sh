# What the tests under systemd share: checks that count, and looks at the pods.
kept=/var/tmp/allot-test
mkdir -p "$kept"
passed=$(cat "$kept/passed" 2>/dev/null || echo 0)
failed=$(cat "$kept/failed" 2>/dev/null || echo 0)
top=/sys/fs/cgroup/allot.slice/allot-pods.service
pods=$top/pods
output=$kept/output
# What the pod of hooked.yaml writes as it ends.
hooked=/var/tmp/allot-hooked/ended

# check NAME COMMAND...: one test.
check() {
    name=$1
    shift
    if "$@" >"$output" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $(uptime_s) $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $(uptime_s) $name: $*"
        sed 's/^/    /' "$output"
    fi
}

not() { ! "$@"; }
uptime_s() { printf '%6s' "$(cut -d' ' -f1 /proc/uptime)"; }
# within SECONDS COMMAND...: tries until it holds.
within() {
    end=$(($(cut -d. -f1 /proc/uptime) + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$(cut -d. -f1 /proc/uptime)" -ge "$end" ]; then
            "$@"
            return 1
        fi
        sleep 0.2
    done
}
# holds FILE TEXT
holds() {
    echo "$1 holds $(cat "$1"), $2 is right"
    [ "$(cat "$1")" = "$2" ]
}
says() { # TEXT COMMAND...
    text=$1
    shift
    "$@" >"$kept/said" 2>&1 || true
    cat "$kept/said"
    grep -q -- "$text" "$kept/said"
}
silent() { # COMMAND...: it does well and has nothing to say
    "$@" >"$kept/said" 2>&1
    status=$?
    cat "$kept/said"
    [ "$status" = 0 ] && [ ! -s "$kept/said" ]
}
left_in() { # DIRECTORY...: what is in those that are there
    for directory; do [ ! -e "$directory" ] || find "$directory" -mindepth 1; done
}
left_of_allot() { # DIRECTORY...: what is named after allot there
    for directory; do [ ! -e "$directory" ] || find "$directory" -name '*allot*' -print; done
}
failed_units() { systemctl list-units --failed --plain --no-legend --quiet; }
shows() { # TEXT COMMAND...: the very text
    text=$1
    shift
    "$@" >"$kept/said" 2>&1 || true
    cat "$kept/said"
    grep -qF -- "$text" "$kept/said"
}
cgroup_of() { find "$pods" -name "pod$(allot get pod "$1" -o json | sed -n 's/^ *"uid": "\(.*\)".*/\1/p' | head -n 1)"; }
phase() { [ "$(allot get pod "$1" -o json | sed -n 's/^ *"phase": "\(.*\)".*/\1/p')" = "$2" ]; }
ready() { says '1/1 *Running' allot get pod "$1" --no-headers; }
user_of() { stat -c '%u %g' "/proc/$(head -n 1 "$(cgroup_of "$1")/app/cgroup.procs")"; }
main_pid() { systemctl show "$1" --property=MainPID --value; }
value_of() { systemctl show "$1" --property="$2" --value; }
no_drift() { allot diff; }
all_active() {
    for unit in allotd.service allot-pods.service allotd.socket allot-errand.socket; do
        systemctl is-active --quiet "$unit" || return 1
    done
}

# look FILE: values, processes and shims of all pods that are there.
look() {
    find "$pods" \( -name 'cpu.max' -o -name 'cpu.weight' -o -name 'memory.m[ai][xn]' -o -name 'memory.low' -o -name 'memory.swap.max' -o -name 'pids.max' \
        -o -name 'cgroup.procs' -o -name 'hugetlb.2MB.max' -o -name 'memory.oom.group' \) -exec grep -H '' {} + | sort >"$1"
    grep ' /var/lib/allotd/pods/' /proc/mounts >>"$1"
}
remember() { look "$kept/before"; }
# same NAME: nothing of any pod has changed since the last remember, not even who runs.
same() {
    look "$kept/after"
    check "$1: values, processes and volumes are as before" diff "$kept/before" "$kept/after"
}
# own FILE: what is in the files of systemd's own cgroups, which allotd must never write.
own() {
    for cgroup in /sys/fs/cgroup /sys/fs/cgroup/allot.slice "$top" /sys/fs/cgroup/allot.slice/allotd.service; do
        echo "$cgroup"
        (cd "$cgroup" && grep -H '' cgroup.subtree_control cpu.weight cpu.max memory.max memory.min memory.low memory.high memory.swap.max pids.max \
            hugetlb.2MB.max 2>/dev/null)
    done >"$1"
}

# ask PATH: of the API.
ask() { printf 'GET %s HTTP/1.0\r\nHost: x\r\n\r\n' "$1" | perl -MIO::Socket::UNIX -e '
    my $s = IO::Socket::UNIX->new(Peer => "/run/allotd/allotd.sock") or die; print $s <STDIN>; print <$s>;'; }

# dump: what is needed to understand a failure.
dump() {
    [ "$failed" != 0 ] || return 0
    systemctl status allotd.service allot-pods.service | cat
    journalctl -o short-monotonic | grep -E 'allot|systemd\[1\]' | tail -n 150
}

# finish STATUS: the end of a boot, STATUS if all is well.
finish() {
    echo "$passed" >"$kept/passed"
    echo "$failed" >"$kept/failed"
    if [ "$1" != 194 ]; then
        echo "$passed passed, $failed failed"
        [ "$failed" = 0 ] || exit 1
    fi
    exit "$1"
}
