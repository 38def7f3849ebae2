# Runs a command by Apptainer as a user who is not root: apptainer.bash ROOT COMMAND… ROOT is a root folder that has Apptainer, and the image as
# /image.tar; the first run makes /image.sif of it. It wants a mount namespace of its own, with which its mounts end.
set -euo pipefail

root=$1
shift
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/someone
# Apptainer wants a root folder that is a mount.
mount --bind "$root" "$root"
for at in proc sys dev; do mount --rbind "/$at" "$root/$at"; done
cd "$root"
mkdir -p old
pivot_root . old
umount -l old
cd "$HOME"
[ -e /image.sif ] || apptainer build /image.sif docker-archive:/image.tar >/build.log 2>&1
exec setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all apptainer --quiet exec --unsquash --cleanenv --bind /data:/data /image.sif "$@"
