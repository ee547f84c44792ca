//! Effects of programs that delete files.

use super::{Arg, CommandEffect, Place, find_places, is_temporary, join_names, non_option_words, quoted};
use crate::policy::paths::Sandbox;
use crate::policy::shell::{Invocation, base};
use crate::protocol::{Containment, Risk};

/// Verb phrase whose object is inserted before "to the trash".
const TRASHES: &str = "moves to the trash";
/// Placeholder for a file name that `find` or `xargs` inserts.
const INSERTED: &str = "{}";

/// Returns the effect of a program that deletes or empties files.
pub(crate) fn effect(program: &str, words: &[Arg], place: Place<'_>) -> Option<CommandEffect> {
    let (verb, targets) = match program {
        "rm" | "rmdir" | "unlink" | "srm" => ("deletes", non_option_words(words, &[])),
        "shred" => ("overwrites", non_option_words(words, &["-n", "-s", "--iterations", "--size"])),
        "truncate" => ("truncates", non_option_words(words, &["-s", "--size", "-r", "--reference"])),
        "trash" | "trash-put" => (TRASHES, non_option_words(words, &[])),
        "find" if runs_rm(words) => return Some(matched_effect(words, place)),
        "find" if words.iter().any(|word| word.text == "-delete") => ("deletes files in", find_places(words)),
        _ => return None,
    };
    if program == "find" && targets.is_empty() {
        return Some(targets_effect(verb, &[&Arg::plain(".")], place));
    }
    Some(targets_effect(verb, &targets, place))
}

fn targets_effect(verb: &str, targets: &[&Arg], place: Place<'_>) -> CommandEffect {
    if let Some(special) = targets.iter().find_map(|target| find_special(target, verb, place)) {
        let containment = special.containment.filter(|_| targets.len() == 1);
        return CommandEffect { containment, ..special.with_verb(verb) };
    }
    if !targets.is_empty() && targets.iter().all(|target| target.text == INSERTED) {
        return CommandEffect::new(Risk::Medium, phrase(verb, unnamed_object(verb)));
    }
    let outside: Vec<String> =
        targets.iter().filter(|target| place.is_outside(target)).map(|target| target.text.clone()).collect();
    if let Some(names) = join_names(&outside) {
        let sentence = format!("{}, outside the workspace", phrase(verb, &names));
        if targets.iter().filter(|target| place.is_outside(target)).all(|target| is_own_temporary(target, place)) {
            return CommandEffect::new(Risk::Medium, sentence);
        }
        let effect = CommandEffect::critical(sentence);
        let blocked = |target: &&Arg| target.is_known() && place.is_outside(target) && !is_temporary(&place.path(target));
        // If the line also deletes files in the workspace, the sandbox does not block those deletions.
        return if targets.iter().all(blocked) { effect.with_containment(Containment::Blocked) } else { effect };
    }
    let inside: Vec<String> = targets.iter().map(|target| target.text.clone()).collect();
    let risk = if verb == "overwrites" { Risk::High } else { Risk::Medium };
    match join_names(&inside) {
        Some(names) => CommandEffect::new(risk, phrase(verb, &names)),
        None => CommandEffect::new(Risk::High, phrase(verb, unnamed_object(verb))),
    }
}

/// Returns whether the words of `find` make it run `rm` on the files that it finds.
pub(super) fn runs_rm(words: &[Arg]) -> bool {
    let is_exec = |word: &Arg| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let is_rm = |word: &Arg| matches!(base(&word.text), "rm" | "rmdir" | "unlink");
    words.windows(2).any(|pair| is_exec(&pair[0]) && is_rm(&pair[1]))
}

/// Returns whether a command deletes exactly the files whose names another program inserts.
pub(super) fn deletes_inserted(invocation: &Invocation) -> bool {
    let targets = non_option_words(&invocation.argv[1..], &[]);
    matches!(invocation.base(), "rm" | "rmdir" | "unlink") && targets.iter().all(|target| target.text == INSERTED)
}

/// Returns the effect of deleting the files that `find` finds.
fn matched_effect(words: &[Arg], place: Place<'_>) -> CommandEffect {
    let here = Arg::plain(".");
    let mut places = find_places(words);
    if places.is_empty() {
        places.push(&here);
    }
    let whole = targets_effect("deletes files in", &places, place);
    let is_name = |word: &Arg| matches!(word.text.as_str(), "-name" | "-iname" | "-path" | "-ipath" | "-wholename");
    let is_plain = !words.iter().any(|word| matches!(word.text.as_str(), "!" | "-not" | "-o" | "-or"));
    let names = words.windows(2).filter(|pair| is_plain && is_name(&pair[0])).map(|pair| pair[1].text.clone());
    let names: Vec<String> = names.collect();
    let is_root = |target: &&Arg| place.context.roots.contains(&place.path(target));
    let is_narrowed = !names.is_empty() && places.iter().all(is_root);
    if whole.is_critical || whole.risk == Risk::High && !is_narrowed || places.iter().any(|target| place.is_outside(target)) {
        return whole;
    }
    let files = join_names(&names).map_or_else(|| "files".to_owned(), |names| format!("files that match {names}"));
    let directories = join_names(&places.iter().map(|target| target.text.clone()).collect::<Vec<_>>());
    CommandEffect { sentence: format!("deletes {files} in {}", directories.unwrap_or_default()), risk: Risk::Medium, ..whole }
}

/// Returns whether a target is inside a temporary directory of which every sandboxed command has a private copy.
fn is_own_temporary(target: &Arg, place: Place<'_>) -> bool {
    let path = place.path(target);
    let is_below = |directory: &str| path.strip_prefix(directory).is_ok_and(|below| below.components().next().is_some());
    place.context.sandbox == Sandbox::Present && !target.glob && ["/tmp", "/var/tmp"].into_iter().any(is_below)
}

/// Joins a verb and its object into a phrase.
fn phrase(verb: &str, object: &str) -> String {
    if verb == TRASHES { format!("moves {object} to the trash") } else { format!("{verb} {object}") }
}

/// Returns the object for a verb whose targets are known only at run time.
fn unnamed_object(verb: &str) -> &'static str {
    if verb.ends_with(" in") {
        "directories whose names are known only at run time"
    } else {
        "files whose names are known only at run time"
    }
}

/// A deletion target that deserves more attention than an ordinary file.
struct SpecialTarget {
    object: String,
    is_critical: bool,
    containment: Option<Containment>,
}

impl SpecialTarget {
    fn with_verb(self, verb: &str) -> CommandEffect {
        let sentence = phrase(verb, &self.object);
        if self.is_critical { CommandEffect::critical(sentence) } else { CommandEffect::new(Risk::High, sentence) }
    }
}

fn find_special(target: &Arg, verb: &str, place: Place<'_>) -> Option<SpecialTarget> {
    let critical = |object: String| Some(SpecialTarget { object, is_critical: true, containment: None });
    if !target.is_known() {
        return critical(unnamed_object(verb).to_owned());
    }
    let mut path = place.path(target);
    // A glob for all entries of a directory counts as the directory.
    let all = target.glob && path.file_name().is_some_and(|name| matches!(name.to_str(), Some("*" | ".*" | "{*,.*}")));
    if all {
        path.pop();
    }
    let home = &place.context.home;
    let of_workspace = |special| SpecialTarget { containment: Some(Containment::OnlyWorkspace), ..special };
    if path.parent().is_none() {
        let object = if verb.ends_with(" in") { "any directory on this machine" } else { "every file on this machine" };
        return critical(object.to_owned()).map(of_workspace);
    }
    if path == *home {
        let has_workspace = place.context.roots.iter().any(|root| root.starts_with(home));
        let left = if has_workspace { Containment::OnlyWorkspace } else { Containment::Blocked };
        return critical("your home directory".to_owned()).map(|special| SpecialTarget { containment: Some(left), ..special });
    }
    if home.starts_with(&path) {
        return critical(format!("{}, which contains your home directory", quoted(&target.text))).map(of_workspace);
    }
    if place.context.roots.iter().any(|root| root.starts_with(&path)) {
        return Some(SpecialTarget {
            object: "the whole workspace".to_owned(),
            is_critical: !place.context.in_workspace(&path),
            containment: None,
        });
    }
    if place.context.in_workspace(&path) && path.components().any(|part| part.as_os_str() == ".git") {
        return Some(SpecialTarget {
            object: format!("the repository data in {}", quoted(&target.text)),
            is_critical: false,
            containment: None,
        });
    }
    None
}
