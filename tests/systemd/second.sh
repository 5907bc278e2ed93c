# The second boot of the same disks: pods return; then the package goes.
check "all of it runs again" all_active
for pod in web batch idle hooked fixed-allot-vm; do check "$pod runs again" within 90 ready "$pod"; done
check "at shutdown its hook ran before SIGTERM" holds "$hooked" "$(printf 'stop\nterm')"
rm "$hooked"
check "at shutdown it was asked to end, and that was recorded" says 'SIGTERM' allot describe pod web
web=$(cgroup_of web)
check "memory.max of web" holds "$web/app/memory.max" 50331648
volume=$(ls -d /var/lib/allotd/pods/*/.volumes/cache)
check "its volume is mounted" within 10 holds "$volume/file" kept
check "the weight that an administrator set is there" holds /sys/fs/cgroup/allot.slice/cpu.weight 77
check "no drift" no_drift
check "a pod goes" allot delete pod batch
check "and is gone" within 30 not allot get pod batch

# --- removal --------------------------------------------------------------------------------------------------
check "a pod that hears no SIGTERM" allot apply -f /payload/deaf.yaml
check "runs" within 60 phase deaf Running
systemctl set-property --runtime allot-pods.service TasksMax=9000
check "removal tells which pods end" says 'web' dpkg --remove allotd
check "who did not end was killed, and nobody else" says '; 1 had to be killed' journalctl -b -u allot-pods.service
check "critical pods had their third of the time" says 'containers have ended in 2[0-4]\.' journalctl -b -u allot-pods.service
check "the hook ran before SIGTERM" holds "$hooked" "$(printf 'stop\nterm')"
check "nothing of them runs" not pgrep -x sleep
check "no shim is left" not pgrep allotd
check "their cgroups are gone" not test -e /sys/fs/cgroup/allot.slice
check "no unit is active or failed" silent systemctl list-units --plain --no-legend --quiet 'allot*'
check "their memory is given back" not grep -q /var/lib/allotd/pods/ /proc/mounts
check "their state stays" test -e /var/lib/allotd/store.redb
check "and the settings" test -e /etc/allotd/manifests/fixed.yaml

# systemd/systemd#26311: a cgroup that hands controllers on takes no process, so what an unclean end has left keeps the
# holder from starting. systemd ends it then, and the second start does.
mkdir -p "$pods/left"
for above in /sys/fs/cgroup/allot.slice "$top" "$pods"; do echo +memory >"$above/cgroup.subtree_control"; done
setsid -f sh -c 'echo $$ >"$1/cgroup.procs"; exec sleep 4711' - "$pods/left"
check "it installs again, beside what an unclean end has left" dpkg -i "$(ls /payload/*.deb | grep next)"
check "which was in the way" says 'status=219/CGROUP' journalctl -u allot-pods.service
check "all of it runs" within 60 all_active
for pod in web fixed-allot-vm; do check "$pod is back" within 90 ready "$pod"; done
check "what was left is gone" not pgrep -f 'sleep 4711'
check "no drift" no_drift
check "the pod that hears no SIGTERM goes" allot delete pod deaf --grace-period=1
check "and is gone" within 30 not allot get pod deaf

# Directories of the administrator's, one of which others use too.
mkdir -p /srv/allot/state /srv/allot/logs
echo mine >/srv/allot/state/mine
sed -i -e 's|^stateDir: .*|stateDir: /srv/allot/state|' -e 's|^podLogsDir: .*|podLogsDir: /srv/allot/logs|' /etc/allotd/config.yaml
systemctl restart allotd
check "a pod in other directories" allot apply -f /payload/web.yaml
check "is ready" within 60 ready web
check "and has logs there" silent test -n "$(ls /srv/allot/logs)"

check "purge tells what it leaves" says 'what is in /srv/allot/state stays' dpkg --purge allotd
check "which is what others put there" holds "$(find /srv/allot/state /srv/allot/logs -type f)" mine
check "and nothing else" silent test "$(find /srv/allot/state /srv/allot/logs -mindepth 1)" = /srv/allot/state/mine
check "no state is left" silent left_in /var/lib/allotd /var/log/pods /etc/allotd /run/allotd
check "no unit is left" silent left_of_allot /etc/systemd /run/systemd /var/lib/systemd
check "no file is left" silent left_of_allot /usr/bin /usr/lib /usr/share /var/lib/dpkg/info
check "no process is left" not pgrep allot
check "none of pods either" not pgrep -x sleep
check "no cgroup is left" not test -e /sys/fs/cgroup/allot.slice
check "no mount is left" not grep -qE '(/pods/state|/var/lib/allotd|/srv/allot/state)/pods/' /proc/mounts
check "nothing failed in the background" silent failed_units
dump
