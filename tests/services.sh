#!/usr/bin/env bash
# Tests aye with emulators of cloud storage: moto (S3) and Azurite (Azure Blob Storage), on free ports of this machine.
# It needs Python with pip, and Node with npm, which fetch the emulators unless they are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { printf 'tests/services.sh: %s\n' "$*" >&2; exit 1; }
place="$(mktemp -d)"
emulators=()
stop() {
    for emulator in "${emulators[@]}"; do kill "$emulator" 2>/dev/null || true; done
    rm -rf "$place"
}
trap stop EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
wait_for() {
    for _ in $(seq 100); do
        if curl --silent --output /dev/null "$1"; then return; fi
        sleep 0.2
    done
    fail "no response from $1: $(cat "$place"/*.log)"
}

moto="$(command -v moto_server || true)"
if [ -z "$moto" ]; then
    python3 -m venv "$place/venv"
    "$place/venv/bin/pip" install --quiet 'moto[server]>=5.1'
    moto="$place/venv/bin/moto_server"
fi
port="$(free_port)"
"$moto" -H 127.0.0.1 -p "$port" >"$place/moto.log" 2>&1 &
emulators+=($!)
export AYE_TEST_S3="http://127.0.0.1:$port"
wait_for "$AYE_TEST_S3"
curl --silent --fail --output /dev/null -X PUT "$AYE_TEST_S3/team"

azurite="$(command -v azurite-blob || true)"
if [ -z "$azurite" ] && command -v npm >/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$place" azurite
    azurite="$place/node_modules/.bin/azurite-blob"
fi
if [ -n "$azurite" ]; then
    port="$(free_port)"
    "$azurite" --silent --inMemoryPersistence --skipApiVersionCheck --blobHost 127.0.0.1 --blobPort "$port" >"$place/azurite.log" 2>&1 &
    emulators+=($!)
    # The account and the key that every Azurite has.
    export AZURE_STORAGE_ACCOUNT_NAME=devstoreaccount1
    export AZURE_STORAGE_ACCOUNT_KEY='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
    export AYE_TEST_AZURE="http://127.0.0.1:$port/$AZURE_STORAGE_ACCOUNT_NAME"
    wait_for "$AYE_TEST_AZURE"
    python3 - "$AYE_TEST_AZURE" <<'PYTHON'
import base64, email.utils, hashlib, hmac, os, sys, urllib.request
account, key = os.environ["AZURE_STORAGE_ACCOUNT_NAME"], base64.b64decode(os.environ["AZURE_STORAGE_ACCOUNT_KEY"])
date = email.utils.formatdate(usegmt=True)
text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n/{account}/{account}/team\nrestype:container"
signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
request = urllib.request.Request(sys.argv[1] + "/team?restype=container", method="PUT", headers={
    "x-ms-date": date, "x-ms-version": "2021-08-06", "authorization": f"SharedKey {account}:{signature}", "content-length": "0"})
urllib.request.urlopen(request)
PYTHON
else
    printf 'tests/services.sh: skipped Azure: `npm` is missing\n' >&2
fi

if [ -n "${AYE_TEST_BINARY:-}" ]; then
    "$AYE_TEST_BINARY" --ignored sessions_continue_over_real_emulators --nocapture
else
    cargo test --locked --test e2e -- --ignored sessions_continue_over_real_emulators --nocapture
fi
