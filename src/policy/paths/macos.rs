//! macOS path semantics, derived from the path text and the given symlinks. The module does not access the disk, so it
//! can be tested on any machine.
#![cfg_attr(not(test), expect(dead_code, reason = "`sys` finds the real path; these rules are only tested"))]

use super::names::{fold_name, without_case};
use super::protected::PROTECTED;
use super::{PathJudgement, Use};
use icu_normalizer::DecomposingNormalizerBorrowed;

const MAX_BYTES: usize = 1024;
const MAX_NAME_BYTES: usize = 255;
const MAX_LINKS: usize = 32;
/// Mount point of the data volume, through which the same files can be accessed by a second path.
const DATA: [&str; 3] = ["System", "Volumes", "Data"];
/// Symlinks that exist on every macOS system.
const LINKS: [(&str, &str); 4] =
    [("/var", "private/var"), ("/tmp", "private/tmp"), ("/etc", "private/etc"), ("/home", "System/Volumes/Data/home")];
/// Top-level names that open files by number or by special rules.
const ODD: [&str; 3] = [".vol", ".nofollow", ".resolve"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Ignored,
    Kept,
}

/// Known state of the machine: the workspace, the home directory and the targets of symlinks.
pub(crate) struct MacFacts<'a> {
    pub root: &'a str,
    pub home: &'a str,
    pub case: Case,
    pub link: &'a dyn Fn(&str) -> Option<String>,
}

/// Judges an operation on the path `given`.
pub(crate) fn judge(given: &str, purpose: Use, machine: &MacFacts<'_>) -> PathJudgement {
    if given.is_empty() || given.contains('\0') {
        return PathJudgement::Blocked("not a path");
    }
    if given.len() >= MAX_BYTES || given.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return PathJudgement::Blocked("the path is too long");
    }
    let whole = match given.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", machine.home),
        Some(_) => return PathJudgement::Blocked("only `~` and `~/…` can name a home directory"),
        None if given.starts_with('/') => given.to_owned(),
        None => format!("{}/{given}", machine.root),
    };
    let (Some(root), Some(real)) = (resolve_links(machine.root, machine), resolve_links(&whole, machine)) else {
        return PathJudgement::Blocked("symlink loop");
    };
    if real.first().is_some_and(|first| ODD.contains(&first.as_str())) {
        return PathJudgement::Blocked("the path addresses a file by number");
    }
    // The path of a file's fork is below the path of the file.
    if real.iter().any(|name| without_case(name) == "..namedfork") {
        return PathJudgement::Blocked("the path names a fork of a file");
    }
    let same = |(one, other): (&String, &String)| comparison_key(one, machine.case) == comparison_key(other, machine.case);
    if real.len() < root.len() || !real.iter().zip(&root).all(same) {
        return PathJudgement::Outside;
    }
    let is = |name: &String, known: &[&str]| known.contains(&fold_name(name).as_str());
    if purpose == Use::Changes
        && (real[root.len()..].iter().any(|name| is(name, PROTECTED)) || root.iter().any(|name| is(name, &[".git"])))
    {
        return PathJudgement::Blocked("the path is protected");
    }
    PathJudgement::Inside
}

/// Returns the form of a name used for comparison. The name is normalized and, if the file system ignores case,
/// case-folded. Invisible characters are preserved, because not every file system ignores them.
fn comparison_key(name: &str, case: Case) -> String {
    let name = DecomposingNormalizerBorrowed::new_nfd().normalize(name);
    match case {
        Case::Ignored => without_case(&name),
        Case::Kept => name.into_owned(),
    }
}

/// Returns the components of an absolute path after resolving all symlinks, or `None` if they form a loop. `..` is
/// applied after the preceding symlink has been resolved.
fn resolve_links(path: &str, machine: &MacFacts<'_>) -> Option<Vec<String>> {
    let queue =
        |text: &str| text.split('/').rev().filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect::<Vec<_>>();
    let (mut real, mut pending, mut links): (Vec<String>, _, _) = (Vec::new(), queue(path), 0);
    while let Some(name) = pending.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        real.push(name);
        if real.iter().map(|name| without_case(name)).eq(DATA.iter().map(|name| without_case(name))) {
            real.clear();
            continue;
        }
        let here = format!("/{}", real.join("/"));
        let known = LINKS.iter().find(|(link, _)| comparison_key(link, machine.case) == comparison_key(&here, machine.case));
        let Some(target) = known.map(|(_, target)| (*target).to_owned()).or_else(|| (machine.link)(&here)) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        real.pop();
        if target.starts_with('/') {
            real.clear();
        }
        pending.extend(queue(&target));
    }
    Some(real)
}
