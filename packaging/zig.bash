# Sourced with $folder set, and with the programs that a script needs of the machine in the array needed: says what is missing, gets Zig,
# cargo-zigbuild and CMake from PyPI into $folder/python, puts them first into the path, and has cargo build into $folder/build.
for tool in "${needed[@]}"; do
  command -v "$tool" >/dev/null || { echo "expected $tool, found none; get Rust from https://rustup.rs, and apt-get install python3-venv qemu-user-static" >&2 && exit 2; }
done
tools=(ziglang==0.17.1 cargo-zigbuild==0.24.1 cmake==4.4.5)
python=$folder/python
if [ "$(cat "$python/done" 2>/dev/null)" != "${tools[*]}" ]; then
  rm -rf "$python"
  python3 -m venv "$python"
  "$python/bin/pip" install --quiet --disable-pip-version-check "${tools[@]}"
  echo "${tools[*]}" >"$python/done"
fi
export PATH=$python/bin:$PATH CARGO_TARGET_DIR=$folder/build CARGO_ZIGBUILD_CACHE_DIR=$folder/zig-cache
