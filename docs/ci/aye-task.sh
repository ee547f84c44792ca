#!/usr/bin/env bash
# Runs one aye task in CI, and writes its changes to a patch file instead of the workspace.
#
# Everything comes from environment variables, so that no text of a pull request is ever part of a shell line:
#   AYE_CI_PROMPT     prompt for the model (required)
#   AYE_CI_DATA       text that the prompt is about, such as the title of a pull request; attached as data, never a command
#   AYE_CI_POLICY     policy file, from a place that the author of a pull request cannot change
#   AYE_CI_MODE       approval mode [default: ask]
#   AYE_CI_MODEL      model [default: by the API key]
#   AYE_CI_BUDGET     cost limit in US dollars
#   AYE_CI_OUT        directory for the results [default: aye-out]
#   AYE_CI_PROGRAM    path of aye [default: aye]
#
# Results: changes.patch, response.md, log.txt and exit-code. The exit code is that of `aye exec`.
set -euo pipefail

: "${AYE_CI_PROMPT:?set AYE_CI_PROMPT to the prompt}"
program=${AYE_CI_PROGRAM:-aye}
out=${AYE_CI_OUT:-aye-out}
mkdir -p -- "$out"
rm -f -- "$out/changes.patch" "$out/response.md" "$out/log.txt" "$out/exit-code"

arguments=(exec --patch "$out/changes.patch" --mode "${AYE_CI_MODE:-ask}")
[ -z "${AYE_CI_POLICY:-}" ] || arguments+=(--policy "$AYE_CI_POLICY")
[ -z "${AYE_CI_MODEL:-}" ] || arguments+=(--model "$AYE_CI_MODEL")
[ -z "${AYE_CI_BUDGET:-}" ] || arguments+=(--max-budget-usd "$AYE_CI_BUDGET")

code=0
if [ -n "${AYE_CI_DATA:-}" ]; then
    printf '%s' "$AYE_CI_DATA" | "$program" "${arguments[@]}" -- "$AYE_CI_PROMPT" >"$out/response.md" 2>"$out/log.txt" || code=$?
else
    "$program" "${arguments[@]}" --no-stdin -- "$AYE_CI_PROMPT" >"$out/response.md" 2>"$out/log.txt" || code=$?
fi
printf '%s\n' "$code" >"$out/exit-code"

# The log and the response contain text of the model, which must not be read as commands of the runner or as Markdown.
if [ -n "${GITHUB_ACTIONS:-}" ]; then
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    printf '::stop-commands::%s\n' "$token"
    cat -- "$out/log.txt"
    printf '\n::%s::\n' "$token"
else
    cat -- "$out/log.txt"
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    {
        printf '### aye: exit code %s\n\n' "$code"
        # Four spaces make every line code, whatever it contains. A carriage return also ends a line in Markdown.
        tr '\r' '\n' <"$out/response.md" | sed 's/^/    /'
        printf '\n'
        if [ -s "$out/changes.patch" ]; then
            printf '\nChanged files:\n\n'
            sed -n 's/^diff --git a\//    /p' "$out/changes.patch"
        fi
    } >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf 'exit-code=%s\npatch=%s\n' "$code" "$out/changes.patch" >>"$GITHUB_OUTPUT"
fi
exit "$code"
