#!/usr/bin/env bash
# Runs greet.sh with known names and compares its output.
cd "$(dirname "$0")" || exit 1
failed=0

check() {
  local expected="$1" got
  shift
  got="$(bash greet.sh "$@")"
  if [ "$got" = "$expected" ]; then
    echo "ok    $expected"
  else
    echo "FAIL  expected: $expected"
    echo "           got: $got"
    failed=1
  fi
}

check "Hello, world!"
check "Hello, Ada!" Ada
check "Hello, Ada and Grace!" Ada Grace
check "Hello, Ada, Grace and Alan!" Ada Grace Alan
check "Hello, Ada Lovelace and Grace Hopper!" "Ada Lovelace" "Grace Hopper"

exit "$failed"
