#!/bin/sh
# The demonstration itself; scripts/demo runs it, in its virtual machine or on this one. Plain sh: the
# machine has busybox.
#
# $1: the directory of the manifests

set -eu
manifests=$1 cgroups=/sys/fs/cgroup
top=$cgroups/allot-demo

refuse() {
    echo "demo: $*" >&2
    exit 1
}
for controller in cpu memory pids hugetlb; do
    grep -qsw "$controller" "$cgroups/cgroup.controllers" \
        || refuse "$cgroups has no cgroup v2 controller $controller; without --here the demo brings its own kernel"
done
[ ! -e "$top" ] || refuse "$top exists: does another demo run?"
scratch=$(mktemp -d -t allot-demo.XXXXXX)
# The pods' programs are not root, and have to get to their own directories.
chmod 755 "$scratch"
export ALLOT_SOCKET="$scratch/allotd.sock"

title() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
run() {
    printf '\033[36m$ %s\033[0m\n' "$*"
    "$@"
}
# until_so COMMAND...: waits up to 30 s for it to succeed.
until_so() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -ge 150 ]; then
            echo "waited in vain for: $*" >&2
            exit 1
        fi
        sleep 0.2
    done
}
has() { "$1" "$2" "$3" "$4" | grep -q "$5"; }

cat >"$scratch/config.yaml" <<END
nodeName: demo
cgroupRoot: $top
stateDir: $scratch/state
podLogsDir: $scratch/logs
socket: $ALLOT_SOCKET
END
# Leaves nothing behind, wherever it ends.
agent='' sleepers=''
finish() {
    status=$?
    trap - EXIT
    if [ "$status" -ne 0 ]; then tail -n 20 "$scratch/allotd.log" >&2; fi
    # shellcheck disable=SC2086 # several process ids
    kill $sleepers $agent 2>/dev/null || true
    # An agent that still runs would put its cgroups back.
    wait
    if [ -e "$top" ]; then
        echo 1 >"$top/cgroup.kill"
        until_so remove "$top"
    fi
    rm -rf "$scratch"
    exit "$status"
}
# remove CGROUP: with all below. The kernel has no files to remove, only directories.
remove() { find "$1" -depth -type d -exec rmdir {} +; }
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

title "the agent starts"
allotd --config "$scratch/config.yaml" 2>"$scratch/allotd.log" &
agent=$!
until_so allot status
run allot status

title "a typing error is told with its place"
run allot apply -f "$manifests/typo.yaml" || echo "(exit code $?)"

title "the pod of the Kubernetes documentation is admitted"
run allot apply -f "$manifests/frontend.yaml"
run allot get pods -o wide

title "from its spec to the bytes in the kernel"
run allot explain pod default/frontend

title "the kernel's own files say the same"
pod=$(find "$top/burstable" -maxdepth 1 -name 'pod*')
for file in app/cpu.weight app/cpu.max app/memory.min app/memory.max cpu.max memory.max memory.min; do
    printf '%-16s %s\n' "$file" "$(cat "$pod/$file")"
done

title "running processes are put into its containers"
sleep 1000 &
sleepers=$!
run allot attach default/frontend app --pid "$sleepers"
sleep 1000 &
run allot attach default/frontend log-aggregator --pid $!
sleepers="$sleepers $!"
run cat "$pod/app/cgroup.procs"
run allot get pods

title "a foreign write does not last"
echo max >"$pod/app/memory.max"
until_so grep -qx 134217728 "$pod/app/memory.max"
run cat "$pod/app/memory.max"
run allot diff || true

title "a leak is killed, and it is said whose limit it was"
run allot apply -f "$manifests/simmemleak.yaml"
until_so has allot describe pod simmemleak "OOMKilled"
run allot describe pod simmemleak

title "kill -9 of the agent: the pods go on"
kill -9 "$agent"
allotd --config "$scratch/config.yaml" 2>>"$scratch/allotd.log" &
agent=$!
until_so allot status
run allot get pods

title "the node"
run allot describe node

title "everything goes"
run allot delete pod simmemleak frontend --grace-period 1
run allot get pods
if find "$top" -name 'pod*' -type d | grep -q .; then
    echo "cgroups are left behind" >&2
    exit 1
fi
title "done"
