//! Effects of version control systems other than git.

use super::{Arg, CommandEffect};
use crate::protocol::Risk;

/// Effects that cannot be undone or that affect other machines, as (program, subcommands, effect).
const EFFECTS: &[(&str, &[&str], &str)] = &[
    ("svn", &["revert"], "discards uncommitted changes"),
    ("svn", &["commit", "ci", "import"], "publishes changes to the repository"),
    ("svn", &["delete", "del", "remove", "rm"], "deletes files"),
    ("hg", &["purge", "clean"], "deletes untracked files"),
    ("hg", &["revert"], "discards uncommitted changes"),
    ("hg", &["strip", "prune", "histedit"], "deletes commits"),
    ("hg", &["rollback"], "undoes the last transaction"),
    ("hg", &["push", "email"], "publishes commits"),
    ("jj", &["abandon"], "abandons commits"),
    ("jj", &["restore"], "discards changes in files"),
    ("sl", &["purge", "clean"], "deletes untracked files"),
    ("sl", &["revert"], "discards uncommitted changes"),
    ("sl", &["hide"], "hides commits"),
    ("sl", &["push"], "publishes commits"),
    ("bzr", &["revert"], "discards uncommitted changes"),
    ("bzr", &["clean-tree"], "deletes untracked files"),
    ("bzr", &["push", "send"], "publishes commits"),
];

/// Returns the effect of a command that discards work or publishes it.
pub(crate) fn effect(program: &str, words: &[Arg]) -> Option<CommandEffect> {
    let high = |sentence: &str| Some(CommandEffect::new(Risk::High, sentence));
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.text.as_str()));
    // After an option with a value, the first of these words may be that value.
    let mut plain = words.iter().map(|word| word.text.as_str()).filter(|word| !word.starts_with('-'));
    if has(&["--help"]) {
        return None;
    }
    if matches!(program, "hg" | "sl") && has(&["-C", "--clean"]) && has(&["update", "up", "checkout", "co", "goto"]) {
        return high("discards uncommitted changes");
    }
    if program == "jj" && has(&["git"]) && has(&["push"]) {
        return high("publishes commits");
    }
    let found = plain.find_map(|word| EFFECTS.iter().find(|(name, verbs, _)| *name == program && verbs.contains(&word)));
    found.and_then(|(.., sentence)| high(sentence))
}
