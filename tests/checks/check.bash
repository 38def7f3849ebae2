# Counts checks, for tests that are shell scripts; to be sourced.

passed=0
failed=0
finished=
# Command that runs another one on the host that has Slurm's controller; nothing on this one.
controller=()

check() { # NAME COMMAND…: passes where the command succeeds.
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name: $*"
  fi
}

finish() { # at the end: the last line, and the exit code.
  finished=1
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
clean() { # FOLDER: removes it after a test that came to its end without a failure.
  if [ -n "$finished" ] && [ "$failed" -eq 0 ]; then rm -rf "$1"; else echo "logs are in $1" >&2; fi
}
need_root() {
  if [ "$(id -u)" != 0 ]; then
    echo "expected root, whom the daemons of this test need, found $(id -un): run it as root" >&2
    exit 2
  fi
}
logged() { # LOG COMMAND…: ends the test with the log where the command fails.
  "${@:2}" >"$1" 2>&1 || { cat "$1" >&2 && exit 1; }
}
within() { # SECONDS COMMAND…: until the command succeeds.
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}
said() { grep -q -- "$2" "$1" 2>/dev/null; }
never_said() { [ -s "$1" ] && ! said "$@"; }
field() { "${controller[@]}" scontrol show job "$1" 2>/dev/null | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }
at_least() { local value; value=$(field "$1" "$2"); [ -n "$value" ] && [ "$value" -ge "$3" ]; }
