#!/usr/bin/env bash
# Runs one aye task as a job on a scheduler, such as Kubernetes or Nomad. The object store in [services.workspace] is the only
# state that outlives the machine: another attempt of the same job, on any machine, continues the session of the last one.
#
# Everything comes from environment variables, so that no user text is ever part of a shell line:
#   AYE_JOB_NAME      name of the job, the same for each attempt: letters, digits, `.`, `_` and `-` (required)
#   AYE_JOB_PROMPT    prompt for the model (required)
#   AYE_JOB_POLICY    policy file
#   AYE_JOB_MODE      approval mode [default: auto]
#   AYE_JOB_MODEL     model [default: by the API key]
#   AYE_JOB_BUDGET    cost limit in US dollars
#   AYE_JOB_OUT       directory for the events and the log [default: /tmp/aye-job]
#   AYE_JOB_PROGRAM   path of aye [default: aye]
#
# The working directory is the workspace. The exit code is that of `aye exec`, or 1 if the session could not be pushed: then the
# scheduler should start another attempt on the same machine, or the work since the last push is lost.
set -uo pipefail

fail() {
    printf 'aye-job: %s\n' "$1" >&2
    exit 2
}

[ -n "${AYE_JOB_NAME:-}" ] || fail 'set AYE_JOB_NAME to the name of the job'
[ -n "${AYE_JOB_PROMPT:-}" ] || fail 'set AYE_JOB_PROMPT to the prompt'
case $AYE_JOB_NAME in
*[!A-Za-z0-9._-]*) fail 'AYE_JOB_NAME can contain only letters, digits, `.`, `_` and `-`' ;;
esac
program=${AYE_JOB_PROGRAM:-aye}
out=${AYE_JOB_OUT:-/tmp/aye-job}
mkdir -p -- "$out" || exit 1

# The scheduler ends a job with SIGTERM. aye then pauses the session, and the session is pushed below.
child=
trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT

# Runs a command, and waits for it to end even after a signal.
run() {
    "$@" &
    child=$!
    while :; do
        wait "$child"
        code=$?
        kill -0 "$child" 2>/dev/null || break
    done
    child=
    return "$code"
}

arguments=(exec --output-format events --no-stdin --mode "${AYE_JOB_MODE:-auto}")
[ -z "${AYE_JOB_POLICY:-}" ] || arguments+=(--policy "$AYE_JOB_POLICY")
[ -z "${AYE_JOB_MODEL:-}" ] || arguments+=(--model "$AYE_JOB_MODEL")
[ -z "${AYE_JOB_BUDGET:-}" ] || arguments+=(--max-budget-usd "$AYE_JOB_BUDGET")

# An earlier attempt left its session in the store, under the name of the job.
listed=$("$program" sessions pull --json) || exit 1
# A quote inside of a title is escaped, so that no title can look like these members.
name=$(printf '%s' "$AYE_JOB_NAME" | sed 's/\./\\./g')
id=$(printf '%s' "$listed" | grep -o "\"sessionId\":\"[0-9a-f]*\",\"title\":\"$name\"" | head -n 1 | cut -d '"' -f 4)
if [ -n "$id" ]; then
    # The machine of that attempt is gone.
    "$program" sessions pull "$id" --take-over || exit 1
    arguments+=(--resume "$id")
else
    arguments+=(-- "$AYE_JOB_PROMPT")
fi

run "$program" "${arguments[@]}" >"$out/events.jsonl" 2>"$out/log.txt"
code=$?
cat -- "$out/log.txt" >&2

if [ -z "$id" ]; then
    id=$(sed -n 's/.*"sessionId":"\([0-9a-f]*\)".*/\1/p' "$out/events.jsonl" | head -n 1)
fi
if [ -n "$id" ]; then
    "$program" sessions rename "$id" "$AYE_JOB_NAME" >/dev/null && "$program" sessions push "$id" || {
        [ "$code" -ne 0 ] || code=1
    }
fi
exit "$code"
