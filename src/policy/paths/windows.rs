//! Windows path semantics, derived from the path text and the given links. The module does not access the disk, so it
//! can be tested on any machine.
#![cfg_attr(not(test), expect(dead_code, reason = "aye does not run on Windows yet; these rules are only tested"))]

use super::names::{fold_name, is_short_for, without_case};
use super::protected::PROTECTED;
use super::{PathJudgement, Use};

/// Device names, which are valid in every directory and with any extension.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];
/// Device names that are followed by a number.
const PORTS: &[&str] = &["com", "lpt"];
const MAX_UNITS: usize = 32_767;
const MAX_NAME_UNITS: usize = 255;
const MAX_LINKS: usize = 31;

/// Known state of the machine: the workspace, and the targets of junctions and symlinks.
pub(crate) struct WindowsFacts<'a> {
    pub root: &'a str,
    pub link: &'a dyn Fn(&str) -> Option<String>,
}

/// Beginning of a path, which determines how the remaining text is resolved.
enum PathStart {
    Drive(char),
    /// Relative to the root of the workspace's drive.
    Rooted,
    Relative,
}

/// Judges an operation on the path `given`.
pub(crate) fn judge(given: &str, purpose: Use, machine: &WindowsFacts<'_>) -> PathJudgement {
    let Ok(root) = absolute(machine.root, &[], ' ') else {
        return PathJudgement::Blocked("the workspace path has no drive letter");
    };
    let (drive, names) = match absolute(given, &root.names, root.drive) {
        Ok(found) => (found.drive, found.names),
        Err(judged) => return judged,
    };
    let Some(real) = resolve_links(DrivePath { drive, names }, machine) else { return PathJudgement::Blocked("symlink loop") };
    let real = match real {
        Ok(real) => real,
        Err(judged) => return judged,
    };
    let Some(below) = real.names_below(&root) else { return PathJudgement::Outside };
    let protected = |name: &String| {
        let folded = fold_name(name);
        PROTECTED.iter().any(|known| *known == folded || is_short_for(&folded, known))
    };
    if purpose == Use::Changes && (below.iter().any(protected) || root.names.iter().any(|name| fold_name(name) == ".git")) {
        return PathJudgement::Blocked("the path is protected");
    }
    PathJudgement::Inside
}

/// A drive and the path components below its root.
struct DrivePath {
    drive: char,
    names: Vec<String>,
}

impl DrivePath {
    fn text(&self, count: usize) -> String {
        format!("{}:\\{}", self.drive, self.names[..count].join("\\"))
    }

    /// Returns the components below `root`, or `None` if the path is not below it. Compares names as Windows does.
    fn names_below(&self, root: &Self) -> Option<&[String]> {
        let same = |(one, other): (&String, &String)| without_case(one) == without_case(other);
        let starts =
            self.drive == root.drive && self.names.len() >= root.names.len() && self.names.iter().zip(&root.names).all(same);
        starts.then(|| &self.names[root.names.len()..])
    }
}

/// Returns the absolute form of a path, resolving `..` textually as Windows does. Relative paths are resolved against
/// `base` on `drive`.
fn absolute(given: &str, base: &[String], drive: char) -> Result<DrivePath, PathJudgement> {
    if given.is_empty() {
        return Err(PathJudgement::Blocked("the path is empty"));
    }
    if given.encode_utf16().count() > MAX_UNITS {
        return Err(PathJudgement::Blocked("the path is too long"));
    }
    if let Some(rest) = given.strip_prefix(r"\\?\") {
        return verbatim(rest);
    }
    let text = given.replace('/', "\\");
    if text.starts_with(r"\??\") || text.starts_with(r"\\?\") || text.starts_with(r"\\.\") || text == r"\\." || text == r"\\?" {
        return Err(PathJudgement::Blocked("the path names a device or the kernel"));
    }
    if text.starts_with(r"\\") {
        // Opening such a path would send the user's credentials to a server.
        return Err(PathJudgement::Outside);
    }
    if text == "~" || text.starts_with(r"~\") {
        return Err(PathJudgement::Outside);
    }
    let (start, rest) = parse_start(&text)?;
    let (drive, mut names) = match start {
        PathStart::Drive(letter) => (letter, Vec::new()),
        PathStart::Rooted => (drive, Vec::new()),
        PathStart::Relative => (drive, base.to_vec()),
    };
    for name in rest.split('\\') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(check_component(name)?),
        }
    }
    Ok(DrivePath { drive, names })
}

fn parse_start(text: &str) -> Result<(PathStart, &str), PathJudgement> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), Some(':')) if letter.is_ascii_alphabetic() => match text[2..].strip_prefix('\\') {
            Some(rest) => Ok((PathStart::Drive(letter.to_ascii_lowercase()), rest)),
            None => Err(PathJudgement::Blocked("the path is relative to the current directory of its drive")),
        },
        (Some('\\'), _) => Ok((PathStart::Rooted, &text[1..])),
        _ => Ok((PathStart::Relative, text)),
    }
}

/// Parses the text after `\\?\` literally, without removing or replacing any part of it.
fn verbatim(rest: &str) -> Result<DrivePath, PathJudgement> {
    if rest.len() >= 4 && rest.is_char_boundary(4) && rest[..4].eq_ignore_ascii_case("UNC\\") {
        return Err(PathJudgement::Outside);
    }
    let Ok((PathStart::Drive(drive), rest)) = parse_start(rest) else {
        return Err(PathJudgement::Blocked("the path names a volume or a device"));
    };
    let names = rest.split('\\').filter(|name| !name.is_empty()).map(|name| match name {
        "." | ".." => Err(PathJudgement::Blocked("`..` after `\\\\?\\` is a literal name, which no entry can have")),
        name => check_component(name),
    });
    Ok(DrivePath { drive, names: names.collect::<Result<_, _>>()? })
}

/// Returns a path component that Windows uses unchanged, or an error if the name would be changed or is invalid.
fn check_component(name: &str) -> Result<String, PathJudgement> {
    if name.chars().any(|letter| letter.is_control() || "<>\"|?*/".contains(letter)) {
        return Err(PathJudgement::Blocked("the name contains an invalid character"));
    }
    if name.contains(':') {
        return Err(PathJudgement::Blocked("the path names a stream of a file"));
    }
    if name.ends_with(['.', ' ']) {
        return Err(PathJudgement::Blocked("the system drops trailing dots and spaces from a name"));
    }
    if name.encode_utf16().count() > MAX_NAME_UNITS {
        return Err(PathJudgement::Blocked("a name is too long"));
    }
    if is_device(name) {
        return Err(PathJudgement::Blocked("the name is reserved for a device"));
    }
    Ok(name.to_owned())
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_lowercase();
    let number = |rest: &str| matches!(rest, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³");
    DEVICES.contains(&stem.as_str()) || PORTS.iter().any(|port| stem.strip_prefix(port).is_some_and(number))
}

/// Resolves every junction and symlink. Returns `None` if they form a loop.
fn resolve_links(mut path: DrivePath, machine: &WindowsFacts<'_>) -> Option<Result<DrivePath, PathJudgement>> {
    let (mut checked, mut links) = (0, 0);
    while checked < path.names.len() {
        checked += 1;
        let Some(target) = (machine.link)(&path.text(checked)) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        // Junctions store their targets in kernel notation.
        let target = target.strip_prefix(r"\??\").unwrap_or(&target);
        let above: Vec<String> = path.names[..checked - 1].to_vec();
        let mut led = match absolute(target, &above, path.drive) {
            Ok(led) => led,
            Err(judged) => return Some(Err(judged)),
        };
        led.names.extend_from_slice(&path.names[checked..]);
        path = led;
        checked = 0;
    }
    Some(Ok(path))
}
