# The second boot of the same disks: pods return; then the package goes.
check "all of it runs again" all_active
for pod in web batch idle; do check "$pod runs again" within 90 phase "$pod" Running; done
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
check "removal tells which pods end" says 'web' dpkg --remove allotd
check "nothing of them runs" not pgrep -x sleep
check "no shim is left" not pgrep allotd
check "their cgroups are gone" not test -e "$top"
check "their memory is given back" not grep -q /var/lib/allotd/pods/ /proc/mounts
check "their state stays" test -e /var/lib/allotd/store.redb
check "it installs again" dpkg -i "$(ls /payload/*.deb | grep next)"
check "and pods are back" within 90 phase web Running

check "purge" dpkg --purge allotd
check "no state is left" says '^$' find /var/lib/allotd /var/log/pods /etc/allotd /run/allotd -mindepth 1
check "no unit is left" says '^$' find /etc/systemd/system /run/systemd -name 'allot*'
check "no process is left" not pgrep allot
check "nothing failed in the background" says '^$' systemctl list-units --failed --plain --no-legend
dump
