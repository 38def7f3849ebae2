#!/bin/bash
# Nodes of a cluster, made of namespaces on this machine: up.sh FOLDER NODE…, with names n1 to n9. Needs root, iproute2 and openssh-server.
#
# A node is an sshd with a network interface, a host name, processes, a /run and a /dev/shm of its own; the number of its process is in
# FOLDER/NODE.pid, and what it started ends with it. A switch joins the nodes, and nothing leads from there to this machine's network. The file system
# is shared, as a cluster's is. `ssh -F FOLDER/ssh NODE` is the way in from another node. down.sh ends nodes; up.sh begins an ended one again.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift

# The keys open nothing but these nodes. A shell in a node reads no one's .bashrc, which may be long and is cut off when the node ends.
for key in host user; do [ -e "$folder/$key" ] || ssh-keygen -q -t ed25519 -N "" -C "$key" -f "$folder/$key"; done
cat >"$folder/sshd" <<EOF
HostKey $folder/host
AuthorizedKeysFile $folder/user.pub
StrictModes no
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
SetEnv HOME=$folder
EOF
cat >"$folder/ssh" <<EOF
Host *
  IdentityFile $folder/user
  IdentitiesOnly yes
  UserKnownHostsFile $folder/known
EOF
echo "* $(cat "$folder/host.pub")" >"$folder/known"
{ echo "127.0.0.1 localhost" && printf '10.76.83.%d n%d\n' {1..9}{,}; } >"$folder/hosts"

within() { # NAME COMMAND…: in the network of a node or of the switch.
  nsenter --target "$(cat "$folder/$1.pid")" --net "${@:2}"
}
begin() { # NAME OPTION… COMMAND…: a process in new namespaces. With --fork, which goes with --pid, the process is a child of unshare.
  local process
  setsid unshare --net "${@:2}" </dev/null >"$folder/$1.log" 2>&1 &
  process=$!
  until [ "$(readlink "/proc/$process/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  if [[ " $* " == *" --fork "* ]]; then until process=$(pgrep -P "$!"); do sleep 0.01; done; fi
  echo "$process" >"$folder/$1.pid"
}
if [ ! -e "$folder/switch.pid" ]; then
  begin switch sleep infinity
  within switch ip link add hub type bridge
  within switch ip link set hub up
fi
for node; do
  begin "$node" --uts --ipc --pid --mount --fork --mount-proc --kill-child bash -euc '
    hostname "$1"
    mount --bind "$2/hosts" /etc/hosts
    for own in /run /dev/shm; do mount -t tmpfs tmpfs "$own"; done
    mkdir /run/sshd
    exec /usr/sbin/sshd -D -e -f "$2/sshd"' node "$node" "$folder"
  # The name of the switch's end is the node's. A node that comes back has the address of its card that the others remember.
  within switch ip link delete "$node" 2>/dev/null || true
  within switch ip link add "$node" type veth peer name eth0 address "02:00:00:00:00:0${node#n}" netns "$(cat "$folder/$node.pid")"
  within switch ip link set "$node" master hub up
  within "$node" ip address add "10.76.83.${node#n}/24" dev eth0
  for link in lo eth0; do within "$node" ip link set "$link" up; done
done
for node; do
  for _ in $(seq 100); do
    if within "$1" ssh -F "$folder/ssh" "10.76.83.${node#n}" true 2>/dev/null; then continue 2; fi
    sleep 0.1
  done
  echo "node $node did not come up within 10 s:" >&2
  cat "$folder/$node.log" >&2
  exit 1
done
