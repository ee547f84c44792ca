#!/usr/bin/env bash
# Applies a patch file that an earlier job wrote. The file is untrusted: aye checks it against the files of this checkout, and
# judges every change by the policy of this job.
#
#   AYE_CI_PATCH      patch file (required)
#   AYE_CI_POLICY     policy file, from a place that the author of a pull request cannot change
#   AYE_CI_APPROVE    `yes` approves what the policy asks about; set it only in a job that a person starts
#   AYE_CI_PROGRAM    path of aye [default: aye]
#
# The exit code is that of `aye apply`: 1 if files have changed since, 3 if the policy denies a change.
set -euo pipefail

: "${AYE_CI_PATCH:?set AYE_CI_PATCH to the patch file}"
program=${AYE_CI_PROGRAM:-aye}
arguments=(apply)
[ -z "${AYE_CI_POLICY:-}" ] || arguments+=(--policy "$AYE_CI_POLICY")
"$program" "${arguments[@]}" --check -- "$AYE_CI_PATCH"
[ "${AYE_CI_APPROVE:-}" != yes ] || arguments+=(--yes)
"$program" "${arguments[@]}" -- "$AYE_CI_PATCH"
