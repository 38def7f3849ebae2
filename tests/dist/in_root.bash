# Runs a program in a root folder with /proc and /dev: in_root.bash ARCHITECTURE ROOT COMMAND… It wants user, mount and process namespaces of its own,
# with which its mounts end.
set -euo pipefail

architecture=$1 root=$2
shift 2
if [ "$architecture" != "$(uname -m)" ]; then
  # A user namespace has a list of foreign formats of its own. With the flag F the kernel opens the emulator now, and needs no file of it later.
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  echo ":qemu-aarch64:M::$magic:$mask:$(type -P qemu-aarch64-static):F" >/proc/sys/fs/binfmt_misc/register
fi
mount --rbind /dev "$root/dev"
mount -t proc none "$root/proc"
exec chroot "$root" "$@"
