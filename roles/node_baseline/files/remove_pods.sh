# shellcheck shell=bash
# For the roles of clusters, once nobody starts pods any more: `remove_pods SHIMS MOUNTS` ends the processes whose command line matches
# SHIMS, with what they hold, and takes apart what pods leave: mounts (also those that begin with MOUNTS), networks, cgroups.
remove_pods() {
  local shim link
  # Pods outlive the cluster: their shims are ended one by one.
  for shim in $(pgrep -f "$1"); do
    pkill -KILL -P "$shim"
    kill -KILL "$shim"
  done
  grep -oE " ($2|/var/lib/kubelet/pods|/run/netns/cni-)[^ ]*" /proc/self/mounts | sort --reverse | xargs --no-run-if-empty umount --lazy
  for link in $(ip -oneline link show master cni0 2>/dev/null | grep -oE 'veth[^@:]*') cni0; do
    ip link delete "$link" 2>/dev/null
  done
  ip netns list | grep -o '^cni-[^ ]*' | xargs --no-run-if-empty --max-args=1 ip netns delete
  # Of systemd, or made without it; processes that were killed may take a moment to leave.
  systemctl stop kubepods.slice 2>/dev/null
  timeout 10 sh -c "until find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -delete 2>/dev/null; do sleep 0.1; done"
}
