# The first boot: from a machine without allotd to one that is about to boot again.
older=$(ls /payload/*.deb | grep -v next)
newer=$(ls /payload/*.deb | grep next)

# --- installing ---------------------------------------------------------------------------------------------
check "the package installs" dpkg -i "$older"
check "all of it runs" all_active
if ! all_active; then
    dump
    exit 1
fi
check "it starts at boot" systemctl is-enabled allotd.service allot-pods.service allotd.socket allot-errand.socket
check "the socket is root's and the group's" says '^660 root allot$' stat -c '%a %U %G' /run/allotd/allotd.sock
check "errands are root's alone" says '^600 root root$' stat -c '%a %U %G' /run/allotd/errand.sock
check "controllers are there, huge pages too" says 'cpu.*memory.*hugetlb.*pids' cat "$pods/cgroup.controllers"
check "and that of I/O, for figures" says '^\(.* \)*io\( .*\)*$' cat "$pods/cgroup.controllers"
check "status" allot status
check "exposure is below 4.0" systemd-analyze security --threshold=39 allotd.service
systemd-analyze security allotd.service | tail -n 1

# --- pods ---------------------------------------------------------------------------------------------------
own "$kept/own"
check "pods are admitted" allot apply -f /payload/web.yaml
# Where a pod of nobody's may write, and what is there after a boot.
install -d -m 777 "${hooked%/*}"
check "and one with a hook" allot apply -f /payload/hooked.yaml
mkdir -p /etc/allotd/manifests
cp /payload/fixed.yaml /etc/allotd/manifests
for pod in web batch idle hooked fixed-allot-vm; do check "$pod runs" within 60 phase "$pod" Running; done
web=$(cgroup_of web)
check "cpu.max of web" holds "$web/cpu.max" "10000 100000"
check "memory.max of web" holds "$web/app/memory.max" 50331648
check "hugetlb of web" holds "$web/app/hugetlb.2MB.max" 0
check "no swap for web" holds "$web/app/memory.swap.max" 0
check "its I/O is counted" test -e "$web/app/io.stat"
volume=$(ls -d /var/lib/allotd/pods/*/.volumes/cache)
check "the volume in memory is mounted among the host's" within 10 holds "$volume/file" kept
check "its size" says ' 8192 ' df -k "$volume"
check "a volume is seen at its mountPath by the container alone" not test -e /mnt/other
check "no limit of systemd's stands above the pods" holds "$top/pids.max" max
check "no drift" no_drift
sleep 1
remember

# --- systemd's own files --------------------------------------------------------------------------------------
weight=$(allotd --print-cpu-weight)
check "systemd gives the slice the weight that the configuration asks for" holds /sys/fs/cgroup/allot.slice/cpu.weight "$weight"
check "and knows of it" says "^$weight\$" value_of allot.slice CPUWeight
systemctl restart allotd.service
own "$kept/own-after"
check "systemd's own files are as systemd wrote them" diff "$kept/own" "$kept/own-after"
# moby/moby#51446: a reload of systemd made the swap limits of containers "max"; kubernetes#104289: and the weight of all
# pods another one.
for _ in 1 2 3 4 5 6 7 8 9 10; do systemctl daemon-reload; done
check "no drift after daemon-reload" no_drift
own "$kept/own-after"
check "systemd's own files are as they were" diff "$kept/own" "$kept/own-after"
check "the slice's weight too" says "^$weight\$" value_of allot.slice CPUWeight
same "ten times daemon-reload"

# What somebody sets for the units through systemd is theirs to set.
systemctl set-property --runtime allot-pods.service MemoryHigh=900M IOWeight=50
systemctl set-property --runtime allot.slice TasksMax=5000
check "what is set for the holder is no drift" no_drift
systemctl restart allotd.service
check "and stays" holds "$top/memory.high" 943718400
check "that of the slice too" holds /sys/fs/cgroup/allot.slice/pids.max 5000
check "and is told, for pods get no more" says 'allot.slice/pids.max is 5000: all pods together get no more' allot status
check "the pods still have their I/O counted" test -e "$web/app/io.stat"
same "properties set for the holder and the slice"
systemctl set-property --runtime allot-pods.service MemoryHigh=infinity IOWeight=
systemctl set-property --runtime allot.slice TasksMax=infinity
same "and taken back"

# --- what is reserved ------------------------------------------------------------------------------------------
config=/etc/allotd/config.yaml
cp "$config" "$kept/config"
all=$(cat "$pods/memory.max")
sed -i 's/^kubeReserved: .*/kubeReserved: {cpu: 200m, memory: 64Mi}/' "$config"
check "reload with more that is reserved" systemctl reload allotd.service
check "so much less is there for all pods" within 20 holds "$pods/memory.max" "$((all - 67108864))"
reserved=$(allotd --print-cpu-weight)
check "and less CPU time" [ "$reserved" -lt "$weight" ]
check "of which systemd knows" within 20 says "^$reserved\$" value_of allot.slice CPUWeight
check "and the kernel" holds /sys/fs/cgroup/allot.slice/cpu.weight "$reserved"
systemctl daemon-reload
check "daemon-reload changes nothing of it" holds /sys/fs/cgroup/allot.slice/cpu.weight "$reserved"
check "no drift" no_drift
cp "$kept/config" "$config"
check "reload with what was reserved before" systemctl reload allotd.service
check "all pods have it again" within 20 holds "$pods/memory.max" "$all"
check "their weight too" within 20 says "^$weight\$" value_of allot.slice CPUWeight
same "reservations"

# --- restarts ---------------------------------------------------------------------------------------------------
echo 8M >"$top/hugetlb.2MB.max"
check "restart" systemctl restart allotd.service
check "what is foreign in systemd's files is no drift" no_drift
check "and is not touched" holds "$top/hugetlb.2MB.max" 8388608
echo max >"$top/hugetlb.2MB.max"
same "restart"

agent=$(main_pid allotd.service)
kill -9 "$agent"
restarted() { [ "$(main_pid allotd.service)" != "$agent" ] && [ "$(main_pid allotd.service)" != 0 ] && systemctl is-active allotd.service; }
check "allotd is back after SIGKILL" within 60 restarted
check "and answers" allot status
same "SIGKILL of allotd"

mkdir -p /run/systemd/system/allotd.service.d
printf '[Service]\nWatchdogSec=6\n' >/run/systemd/system/allotd.service.d/test.conf
systemctl daemon-reload
systemctl restart allotd.service
sleep 10
check "an owner that answers is left alone" says '^0$' value_of allotd.service NRestarts
agent=$(main_pid allotd.service)
kill -STOP "$agent"
check "the watchdog restarts an allotd that hangs" within 90 restarted
check "and says so" says 'Watchdog timeout' journalctl -u allotd.service
check "it answers again" allot status
rm -r /run/systemd/system/allotd.service.d
systemctl daemon-reload
same "watchdog"

systemctl stop allotd.service 2>/dev/null
check "who asks a stopped allotd starts it" allot get pods
check "it runs" systemctl is-active allotd.service
same "stop, and start by the socket"

systemctl set-property allot.slice CPUWeight=77
systemctl restart allotd.service
check "the weight that an administrator sets stays" holds /sys/fs/cgroup/allot.slice/cpu.weight 77

# --- upgrade ------------------------------------------------------------------------------------------------------
agent=$(main_pid allotd.service)
holder=$(value_of allot-pods.service InvocationID)
check "the package of a higher version installs" dpkg -i "$newer"
check "allotd is a new process" restarted
check "the holder was not restarted" [ "$(value_of allot-pods.service InvocationID)" = "$holder" ]
check "it answers" allot status
same "upgrade"

# --- the holder ---------------------------------------------------------------------------------------------------
check "the holder cannot be stopped by mistake" says 'refused' systemctl stop allot-pods.service
check "it is still there" systemctl is-active allot-pods.service
check "nor restarted" says 'refused' systemctl restart allot-pods.service
check "a start changes nothing" systemctl start allot-pods.service
check "it has no process that could be killed" says '^0$' value_of allot-pods.service MainPID
same "stop of the holder"

# --- reload -------------------------------------------------------------------------------------------------------
agent=$(main_pid allotd.service)
sed -i -e 's/^podPidsLimit: .*/podPidsLimit: 123/' -e 's/^nodeName: .*/nodeName: another/' "$config"
check "reload" systemctl reload allotd.service
check "what can change is in effect" within 10 holds "$web/pids.max" 123
check "and told, as is what cannot" says 'changed: podPidsLimit; only a restart changes: nodeName' journalctl -u allotd.service
check "configz tells what is in force" says '"podPidsLimit":123' ask /configz
cp "$kept/config" "$config"
check "reload of the former file" systemctl reload allotd.service
check "it is in effect" within 10 holds "$web/pids.max" max
same "reload"
sed -i 's/^maxPods: .*/maxPods: 0/' "$config"
check "a bad file fails the reload" not systemctl reload allotd.service
check "why is told" says 'maxPods is 0: 1 to 10000 is right' journalctl -u allotd.service -n 20
kill -HUP "$agent"
check "a signal alone tells of it too" within 20 says 'former one stays' allot status
cp "$kept/config" "$config"
check "a good file ends that" systemctl reload allotd.service
check "nothing is amiss any more" within 20 not says 'former one stays' allot status
check "allotd is the same process" [ "$(main_pid allotd.service)" = "$agent" ]
same "reload of a bad file"

# --- what takes rights ------------------------------------------------------------------------------------------
check "journalctl POD=web" says 'Started container app' journalctl -o cat POD=web NAMESPACE=default CONTAINER=app
check "and of no other pod" not says 'batch' journalctl -o cat POD=web
check "a pod that says nothing is nobody" says '^65534 ' user_of web
check "one that asks to be root is refused" says 'must not run as root: allowRootContainers is false' allot apply --dry-run -f /payload/limits.yaml
sed -i 's/^allowRootContainers: .*/allowRootContainers: true/' "$config"
check "reload with root allowed" systemctl reload allotd.service
check "more pods" allot apply -f /payload/limits.yaml
check "a limit of the disk is kept by the kernel" within 60 says 'refused' allot logs writer
check "an OOM kill is on record with its victim" within 60 says 'tail' allot oom leak
check "a process of another user runs" within 60 phase other Running
check "containers have all capabilities" says "$(grep CapBnd /proc/1/status)" allot logs other
check "may gain rights" says 'NoNewPrivs:.0' allot logs other
check "and no filter" says 'Seccomp:.0' allot logs other
check "they see the host's mounts" shows "$(readlink /proc/1/ns/mnt)" allot logs other
check "and its network" shows "$(readlink /proc/1/ns/net)" allot logs other
check "that process can be ended" allot delete pod other writer leak
gone() { ! allot get pod "$1"; }
check "and is" within 60 gone other
check "the disk's limits are gone with the pod" within 30 gone writer
cp "$kept/config" "$config"
check "reload with root not allowed" systemctl reload allotd.service
same "other pods"

# --- probes: from within what confines the agent --------------------------------------------------------------------
check "a pod that is looked after" allot apply -f /payload/probed.yaml
check "starts, by a connection, and is ready, by a request" within 60 ready probed
sleep 5
check "and lives, by a program" ready probed
check "no look failed or could not be taken" not says 'errored\|Liveness\|Readiness' allot events probed
check "other hosts are not there for probes" says 'IPAddressAllow=.*127.0.0.0/8' systemctl show allotd.service
check "it goes" allot delete pod probed
check "and is gone" within 20 gone probed

# --- all of it ends and begins -------------------------------------------------------------------------------------
check "the slice can be stopped, with all that is in it" systemctl stop allot.slice
check "no process of a pod runs" not pgrep -x sleep
check "no shim is left" not pgrep allotd
check "no cgroup is left" not test -e "$top"
check "it is told how many end" says 'ending 5 containers of 5 pods within 30 s' journalctl -u allot-pods.service
check "none of them had to be killed" says '5 containers have ended in .* s; 0 had to be killed$' journalctl -u allot-pods.service
check "nothing was left for the second step" not says 'left of pods\|still running\|do not end' journalctl -u allot-pods.service
check "the hook ran before SIGTERM" holds "$hooked" "$(printf 'stop\nterm')"
check "a start of the holder brings the agent" systemctl start allot-pods.service
check "all of it runs" within 60 all_active
for pod in web batch idle hooked fixed-allot-vm; do check "$pod is back" within 90 ready "$pod"; done
# What is a shutdown's is told apart from what was before.
rm "$hooked"
check "how it ended was recorded" says 'SIGTERM' allot describe pod web
check "its limit is in the kernel" holds "$(cgroup_of web)/app/memory.max" 50331648
check "no drift" no_drift
check "nothing failed in the background" silent failed_units
dump
