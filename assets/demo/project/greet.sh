#!/usr/bin/env bash
# Greets everyone named on the command line, or the world.
set -euo pipefail
source "$(dirname "$0")/lib/names.sh"

if [ "$#" -eq 0 ]; then
  set -- world
fi

echo "Hello, $(join_names $@)!"
