#!/usr/bin/env bash
# Tries aye with what others wrote: the public suite for MCP clients, both revisions, and the protocol's own example server, each way it
# can be reached. It needs Node 22 or newer with npm, which fetches them; nothing else in the project does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SUITE=@modelcontextprotocol/conformance@0.2.0-alpha.12
EVERYTHING=@modelcontextprotocol/server-everything@latest
REVISIONS=(2025-11-25 2026-07-28)
PORT=39217

fail() { printf 'tests/conformance.sh: %s\n' "$*" >&2; exit 1; }
command -v npm >/dev/null || fail "\`npm\` is missing: install Node 22 or newer"
[ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge 22 ] || fail "Node $(node --version) is too old: 22 is needed"

cargo build --locked
cargo build --locked --features conformance --example mcp-conformance
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')"
aye="$target/debug/aye"
client="$target/debug/examples/mcp-conformance"
# The workspace of what is tried holds the programs: those of servers see no other directory of this machine's that is not the system's.
place="$target/conformance"
mkdir -p "$place"
npm install --silent --no-audit --no-fund --prefix "$place" "$SUITE" "$EVERYTHING"

for revision in "${REVISIONS[@]}"; do
    printf '\n== the client, revision %s\n' "$revision"
    "$place/node_modules/.bin/conformance" client --command "$client" --requirements "$revision" \
        --output-dir "$place/results" >"$place/$revision.log" 2>&1 || { cat "$place/$revision.log"; fail "revision $revision is not met"; }
    sed -n '/SUITE SUMMARY/,$p' "$place/$revision.log"
done

home="$place/home"
rm -rf "$home"
mkdir -p "$home"
own() { env HOME="$home" XDG_CONFIG_HOME="$home/config" XDG_DATA_HOME="$home/data" "$aye" -C "$place" "$@"; }
everything="$place/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
listens=
trap '[ -z "$listens" ] || kill "$listens"' EXIT

tried() {
    printf '\n== the example server by %s\n' "$1"
    own mcp test "$1" >"$place/$1.log" || { cat "$place/$1.log"; fail "the example server is not reached by $1"; }
    grep -q echo "$place/$1.log" || { cat "$place/$1.log"; fail "it does not offer its tool \`echo\` by $1"; }
    head -n 3 "$place/$1.log"
}

# listen WAY PATH: the server on loopback, until the next one.
listen() {
    PORT=$PORT node "$everything" "$1" >"$place/server.log" 2>&1 &
    listens=$!
    for _ in $(seq 100); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
            own mcp add "$1" "http://127.0.0.1:$PORT$2" >/dev/null
            tried "$1"
            kill "$listens"
            wait "$listens" 2>/dev/null || true
            listens=
            return
        fi
        sleep 0.1
    done
    cat "$place/server.log"
    fail "the example server does not listen"
}

own mcp add stdio --network -- "$(command -v node)" "$everything" stdio >/dev/null
tried stdio
listen streamableHttp /mcp
listen sse /sse
printf '\nall of it works\n'
