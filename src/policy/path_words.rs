//! Interprets words of a command as paths, to determine their location and whether they refer to credentials.

use super::paths::Context;
use super::shell::Arg;
use std::path::Path;

/// Returns whether a word, resolved as a path, is outside the workspace or cannot be determined.
pub(crate) fn is_outside_workspace(arg: &Arg, context: &Context, cwd: &Path) -> bool {
    if !arg.is_known() || (arg.tilde && arg.text != "~" && !arg.text.starts_with("~/")) {
        return true;
    }
    !context.in_workspace(&context.resolve(&as_path(arg), cwd))
}

/// Converts a word to a path in which a quoted `~` is an ordinary character.
pub(crate) fn as_path(arg: &Arg) -> String {
    if arg.tilde { arg.text.clone() } else { arg.text.replacen('~', "./~", usize::from(arg.text.starts_with('~'))) }
}

/// Returns the part of a word that may be a path, as in `--file=/etc/x` and `-I/usr/x`.
pub(crate) fn path_part(word: &str) -> &str {
    if !word.starts_with('-') {
        return word;
    }
    match (word.split_once('='), word.find('/')) {
        (Some((_, value)), _) => value,
        (None, Some(at)) => &word[at..],
        (None, None) => "",
    }
}

/// Returns whether keys, tokens or passwords are conventionally stored at a path.
pub(crate) fn is_credential(text: &str) -> bool {
    let places = [
        ".ssh/",
        ".aws/",
        ".gnupg/",
        ".netrc",
        ".kube/config",
        ".docker/config",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "gcloud/",
        "/etc/shadow",
        ".env",
    ];
    let path = text.trim_end_matches('/');
    places.iter().any(|place| match place.strip_suffix('/') {
        Some(directory) => text.contains(place) || path.ends_with(directory),
        None => path.ends_with(place),
    })
}
