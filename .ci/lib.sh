# What the scripts of this folder share; to be sourced. Each ends with "N passed, M failed".
# shellcheck shell=bash
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
passed=0
failed=0
mkdir -p .bazelw

say() { echo "== $*"; }

# step NAME COMMAND...: one step of this script that is not a Bazel test.
step() {
  local name=$1
  shift
  say "$name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

# Runs Bazel tests and counts them by Bazel's own summary, one line for each target; what does not
# build has a line too, or at least fails the command.
run_tests() {
  local log verdict='^//[^ ]+ +(\(cached\) )?'
  log=$(mktemp)
  say "$*"
  "$@" 2>&1 | tee "$log"
  local status=${PIPESTATUS[0]}
  local good bad
  good=$(grep -cE "${verdict}PASSED" "$log")
  bad=$(grep -cE "${verdict}(FAILED|TIMEOUT|FLAKY|INCOMPLETE|NO STATUS)" "$log")
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if [ "$status" -eq 0 ] && [ "$good" -eq 0 ]; then
    echo "FAILED: no test ran"
    bad=1
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
  rm -f "$log"
}

# Installs Debian packages, once more with fresh lists if need be.
install() {
  local get="apt-get -y -qq --no-install-recommends install"
  $get "$@" > /dev/null 2>&1 || { apt-get -qq update > /dev/null 2>&1 && $get "$@" > /dev/null 2>&1; } ||
    echo "could not be installed: $*"
}

# Prints the last line; fails when a step did.
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
