# Counts checks, for tests that are shell scripts; to be sourced.

passed=0
failed=0

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
