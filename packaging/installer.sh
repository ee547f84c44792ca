#!/bin/sh
# Installs aye @VERSION@. Usage: sh aye-installer.sh [--dir DIRECTORY] [--from DIRECTORY]
#
#   --dir   directory for the program [default: ~/.local/bin]
#   --from  take the archive from this directory, and download nothing
#
# The archive is checked against its SHA-256 checksum before anything is changed. The new program replaces an old one in one
# step: if the installation is interrupted, the old program stays as it is. Run the installer again to complete it.
set -eu

version='@VERSION@'
base='@BASE_URL@'
directory="${AYE_INSTALL_DIR:-$HOME/.local/bin}"
from=''

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case "$1" in
        --dir) [ $# -ge 2 ] || fail 'missing directory after --dir'; directory="$2"; shift 2 ;;
        --from) [ $# -ge 2 ] || fail 'missing directory after --from'; from="$2"; shift 2 ;;
        -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail "unknown option \`$1\`" 'run the installer with --help' ;;
    esac
done

libc='-'
if [ "$(uname -s)" = Linux ]; then
    libc=glibc
    if ls /lib/ld-musl-* >/dev/null 2>&1 && ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then libc=musl; fi
fi
case "$(uname -s) $(uname -m) $libc" in
@TARGETS@
    *) fail "aye @VERSION@ has no program for $(uname -s) $(uname -m)" 'build it from source: cargo install --path . --locked' ;;
esac
name="aye-$version-$target"

mkdir -p "$directory" || fail "cannot create $directory" 'choose another directory with --dir'
directory="$(CDPATH='' cd -- "$directory" && pwd)" || fail "cannot open $directory" 'choose another directory with --dir'
# What an installer left that was killed. The name has its process ID.
for left in "$directory"/.aye-install.*; do
    [ -d "$left" ] || continue
    process="${left##*/.aye-install.}"
    process="${process%%.*}"
    case "$process" in
        '' | *[!0-9]*) ;;
        *) kill -0 "$process" 2>/dev/null || rm -rf "$left" ;;
    esac
done
# In the same directory, so that the program can be renamed into place.
work="$(mktemp -d "$directory/.aye-install.$$.XXXXXX")" || fail "cannot write to $directory" 'choose another directory with --dir'
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM

if [ -n "$from" ]; then
    cp "$from/$name.tar.gz" "$work/archive" || fail "cannot read $from/$name.tar.gz"
elif [ -z "$base" ]; then
    fail 'this installer has no address to download from' 'pass --from DIRECTORY with the archive in it'
elif command -v curl >/dev/null 2>&1; then
    curl -fsSL --proto '=https' --proto-redir '=https' -o "$work/archive" "$base/$name.tar.gz" || fail "cannot download $base/$name.tar.gz"
elif command -v wget >/dev/null 2>&1; then
    wget -q --https-only -O "$work/archive" "$base/$name.tar.gz" || fail "cannot download $base/$name.tar.gz"
else
    fail 'neither curl nor wget is installed' 'download the archive yourself and pass --from DIRECTORY'
fi

if command -v sha256sum >/dev/null 2>&1; then
    found="$(sha256sum "$work/archive")"
elif command -v shasum >/dev/null 2>&1; then
    found="$(shasum -a 256 "$work/archive")"
else
    fail 'neither sha256sum nor shasum is installed, so the archive cannot be checked'
fi
[ "${found%% *}" = "$digest" ] || fail "the checksum of $name.tar.gz is wrong; nothing was installed" 'download the archive and the installer again'

tar -xzf "$work/archive" -C "$work" "$name/aye" || fail "cannot unpack $name.tar.gz; nothing was installed"
chmod 755 "$work/$name/aye"
"$work/$name/aye" --version >/dev/null 2>&1 || fail 'the program does not run on this system; nothing was installed' 'build it from source: cargo install --path . --locked'
[ ! -d "$directory/aye" ] || fail "$directory/aye is a directory; nothing was installed"
# On the disk before it is renamed, so that a power failure leaves no incomplete program either.
sync "$work/$name/aye" 2>/dev/null || sync || :
# `aye update` reads this file.
printf '%s\n' "$version" > "$work/mark"
mv -f "$work/$name/aye" "$directory/aye" || fail "cannot write $directory/aye; nothing was installed"
mv -f "$work/mark" "$directory/.aye-installed" || :

printf 'installed aye %s in %s\n' "$version" "$directory"
case ":$PATH:" in
    *":$directory:"*) ;;
    *) printf 'add %s to PATH to start it as `aye`\n' "$directory" ;;
esac
