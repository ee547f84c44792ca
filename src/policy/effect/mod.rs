//! Effects of commands. Each effect is a verb with its object, and has a risk level.

mod delete;
mod git;
mod network;
mod programs;
mod services;
mod version_control;

pub(crate) use network::{downloads, hosts};

use super::git::without_message;
use super::path_words::{as_path, is_credential, is_outside_workspace, path_part};
use super::paths::Context;
use super::program_kinds::runs_its_input;
use super::secret_reads::shown_secret;
use super::shell::builtins::destination;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, COMPUTED, Invocation, SimpleCommand, read};
use super::steering::steers;
use crate::protocol::{Containment, Risk};
use std::path::{Path, PathBuf};

/// Maximum length, in characters, of a name quoted in a sentence.
const MAX_NAME_CHARS: usize = 60;
/// Maximum number of objects that a sentence lists by name; any further objects are only counted.
const MAX_NAMED: usize = 2;
/// Path prefixes of block devices.
const DISKS: &[&str] = &["/dev/sd", "/dev/hd", "/dev/vd", "/dev/nvme", "/dev/mmcblk", "/dev/disk", "/dev/mapper/", "/dev/loop"];
/// System directories.
const SYSTEM_PLACES: &[&str] =
    &["/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/opt", "/root", "/var", "/sys", "/proc", "/dev"];

/// One effect of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandEffect {
    /// Verb with its object, such as "publishes commits to `origin`".
    pub sentence: String,
    pub risk: Risk,
    pub is_critical: bool,
    /// The part of the effect that the sandbox does not prevent when only the workspace is writable.
    pub containment: Option<Containment>,
}

impl CommandEffect {
    fn new(risk: Risk, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), risk, is_critical: false, containment: None }
    }

    fn critical(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), risk: Risk::High, is_critical: true, containment: None }
    }

    fn with_containment(self, containment: Containment) -> Self {
        Self { containment: Some(containment), ..self }
    }

    fn rank(&self) -> (bool, Risk) {
        (self.is_critical, self.risk)
    }
}

/// Context in which a command is judged, including its working directory.
#[derive(Clone, Copy)]
struct Place<'a> {
    context: &'a Context,
    cwd: &'a Path,
}

impl Place<'_> {
    fn path(self, word: &Arg) -> PathBuf {
        self.context.resolve(&as_path(word), self.cwd)
    }

    fn is_outside(self, word: &Arg) -> bool {
        is_outside_workspace(word, self.context, self.cwd)
    }
}

/// Returns the worst effect of one part of a command line, or the first of several equally bad ones. Returns `None` if
/// the part only reads or only changes workspace files.
pub(crate) fn worst_effect(part: &SimpleCommand, context: &Context, cwd: &Path) -> Option<CommandEffect> {
    let place = Place { context, cwd };
    let part = &*without_message(part);
    let mut effects = Vec::new();
    effects.extend(unseen_code_effect(part));
    // The effect of `find` names the files that it passes to `rm`.
    let finds = part.invocations.iter().any(|one| one.base() == "find" && delete::runs_rm(&one.argv[1..]));
    for invocation in part.invocations.iter().filter(|one| !(finds && delete::deletes_inserted(one))) {
        effects.extend(invocation_effect(invocation, place));
    }
    effects.extend(part.redirects.iter().filter(|redirect| !redirect.reads_only).filter_map(|redirect| {
        redirect.target.as_ref().map_or_else(
            || Some(CommandEffect::new(Risk::Medium, "writes to a file whose name is known only at run time")),
            |target| write_effect(target, place),
        )
    }));
    let network = part.invocations.iter().any(|one| network::uses(one.base()));
    let outputs = part.redirects.iter().filter(|redirect| !redirect.reads_only).filter_map(|redirect| redirect.target.as_ref());
    effects.extend(outputs.filter(|target| network && is_credential(&target.text)).map(|target| {
        CommandEffect::critical(format!("saves downloaded data to {}, which can contain credentials", quoted(&target.text)))
    }));
    let inputs = part.redirects.iter().filter(|redirect| redirect.reads_only).filter_map(|redirect| redirect.target.as_ref());
    effects.extend(inputs.filter_map(|target| read_effect(target, place, network)));
    effects.extend(shown_secret(part).map(|name| CommandEffect::new(Risk::Medium, shown_secret_sentence(&name))));
    effects.extend(part.variables.iter().find(|name| steers(name)).map(|name| variable_effect(name)));
    worst(effects)
}

/// Returns the highest-ranked effect, or the first of several with the same rank.
fn worst(effects: impl IntoIterator<Item = CommandEffect>) -> Option<CommandEffect> {
    effects.into_iter().reduce(|worst, one| if one.rank() > worst.rank() { one } else { worst })
}

/// Returns the effect of running code that was downloaded or is known only at run time.
fn unseen_code_effect(part: &SimpleCommand) -> Option<CommandEffect> {
    if let Some(hosts) = &part.downloaded {
        return Some(downloaded_code_effect(hosts));
    }
    let piped = part.piped && (part.reads_code || part.invocations.iter().any(runs_its_input));
    if part.unknown_code || piped {
        let lines = [part.input_from.as_deref(), part.unknown_code.then_some(part.text.as_str())].map(|text| text.map(read));
        let printers = lines.iter().flatten().flat_map(|line| &line.parts).flat_map(|part| &part.invocations);
        let sources: Vec<&Invocation> =
            part.invocations.iter().chain(printers).filter(|one| network::downloads(one.base())).collect();
        let hosts: Vec<String> = sources.iter().flat_map(|one| network::hosts(one)).collect();
        return Some(if sources.is_empty() {
            CommandEffect::critical("runs code that is known only at run time")
        } else {
            downloaded_code_effect(&hosts)
        });
    }
    part.floors.contains(&COMPUTED).then(|| CommandEffect::critical("runs a program whose name is known only at run time"))
}

fn downloaded_code_effect(hosts: &[String]) -> CommandEffect {
    CommandEffect::critical(match join_names(hosts) {
        None => "runs downloaded code".to_owned(),
        Some(hosts) => format!("runs downloaded code from {hosts}"),
    })
}

fn invocation_effect(invocation: &Invocation, place: Place<'_>) -> Option<CommandEffect> {
    let program = invocation.base();
    let words = &invocation.argv[1..];
    let own = programs::effect(program, words, place)
        .or_else(|| delete::effect(program, words, place))
        .or_else(|| git::effect(invocation, place))
        .or_else(|| version_control::effect(program, words))
        .or_else(|| services::effect(program, words))
        .or_else(|| network::effect(program, words));
    let secret = words.iter().filter_map(|word| read_effect(word, place, network::uses(program)));
    let other = operand_effect(invocation, place);
    worst(own.into_iter().chain(secret).chain(other))
}

/// Returns the effect of setting an environment variable that changes how programs behave.
fn variable_effect(name: &str) -> CommandEffect {
    CommandEffect::new(Risk::Medium, format!("sets {}, which changes what programs do", quoted(name)))
}

/// Returns the effect of reading a file that contains credentials. It is critical if the command uses the network.
fn read_effect(word: &Arg, place: Place<'_>, network: bool) -> Option<CommandEffect> {
    // A program that uses the network may send a file that any part of a word names: `-T.env`.
    let path = if network { &word.text } else { path_part(&word.text) };
    if !is_credential(path) {
        return None;
    }
    let name = quoted(path);
    if network {
        return Some(CommandEffect::critical(format!("could send {name}, which can contain credentials")));
    }
    place.is_outside(word).then(|| CommandEffect::new(Risk::Medium, format!("reads {name}, which can contain credentials")))
}

/// Describes a command whose output contains a file with secrets.
pub(crate) fn shown_secret_sentence(name: &str) -> String {
    format!("shows the model {}, which can contain secrets", quoted(name))
}

/// Returns the effect of redirecting output to a file.
fn write_effect(target: &Arg, place: Place<'_>) -> Option<CommandEffect> {
    if DISKS.iter().any(|disk| target.text.starts_with(disk)) {
        return Some(CommandEffect::critical(format!("overwrites the disk {}", quoted(&target.text))));
    }
    if matches!(target.text.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty") || !place.is_outside(target) {
        return None;
    }
    if !target.is_known() {
        return Some(CommandEffect::new(Risk::Medium, "writes to a file whose name is known only at run time"));
    }
    let path = place.path(target);
    let name = quoted(&target.text);
    let effect = if SYSTEM_PLACES.iter().any(|system| path.starts_with(system)) {
        CommandEffect::new(Risk::High, format!("changes the system file {name}"))
    } else if is_dot_file(&path, place) {
        CommandEffect::new(Risk::High, format!("changes the settings file {name}"))
    } else {
        CommandEffect::new(Risk::Medium, format!("writes to {name}, outside the workspace"))
    };
    Some(if is_temporary(&path) { effect } else { effect.with_containment(Containment::Blocked) })
}

/// Returns whether a path is in a directory of which every sandboxed command has a private copy, such as `/tmp`.
fn is_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp", "/dev", "/proc", "/run"].iter().any(|place| path.starts_with(place))
}

/// Returns whether a path is a hidden entry of the home directory or is inside one.
fn is_dot_file(path: &Path, place: Place<'_>) -> bool {
    let below = path.strip_prefix(&place.context.home).ok();
    below.and_then(|rest| rest.components().next()).is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// Returns the effect that the paths in the arguments imply for any program.
fn operand_effect(invocation: &Invocation, place: Place<'_>) -> Option<CommandEffect> {
    let argv = &invocation.argv;
    if let Some(to) = destination(argv) {
        return place
            .is_outside(to)
            .then(|| CommandEffect::new(Risk::Medium, format!("works in {}, outside the workspace", quoted(&to.text))));
    }
    if let Some(effect) = programs::write_effect(invocation.base(), &argv[1..], place) {
        return Some(effect);
    }
    let (is_reader, paths): (bool, Vec<&str>) = match check_options(argv) {
        OptionVerdict::Reads { paths } => (true, paths),
        OptionVerdict::MayDoMore { .. } | OptionVerdict::NoTable => (false, programs::operands(invocation.base(), &argv[1..])),
    };
    let reads = is_reader && argv[0].text == invocation.base();
    let outside = |path: &&str| {
        let word = argv[1..].iter().find(|word| word.text.ends_with(*path));
        word.is_some_and(|word| {
            let word = Arg { text: (*path).to_owned(), ..word.clone() };
            word.is_known() && !word.text.starts_with("/dev/") && place.is_outside(&word)
        })
    };
    let path = paths.into_iter().filter(|path| !path.is_empty()).find(outside)?;
    let verb = if reads { "reads" } else { "uses" };
    Some(CommandEffect::new(Risk::Medium, format!("{verb} {}, outside the workspace", quoted(path))))
}

/// Formats a name for use in a sentence: in backticks and, if it is long, shortened in the middle.
fn quoted(name: &str) -> String {
    let name: String = name.chars().map(|one| if one == '\0' { '…' } else { one }).collect();
    let count = name.chars().count();
    if count <= MAX_NAME_CHARS {
        return format!("`{name}`");
    }
    let half = MAX_NAME_CHARS / 2;
    let start: String = name.chars().take(half).collect();
    let end: String = name.chars().skip(count - half).collect();
    format!("`{start}…{end}`")
}

/// Joins names into a phrase such as "`a`, `b` and 3 more". Returns `None` for an empty list.
fn join_names(names: &[String]) -> Option<String> {
    let mut distinct: Vec<&String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    let shown: Vec<String> = distinct.iter().take(MAX_NAMED).map(|name| quoted(name)).collect();
    match (shown.as_slice(), distinct.len()) {
        ([], _) => None,
        ([one], _) => Some(one.clone()),
        ([one, two, ..], 2) => Some(format!("{one} and {two}")),
        (shown, count) => Some(format!("{} and {} more", shown.join(", "), count - shown.len())),
    }
}

/// Returns the path arguments of `find`, which come after its global options and before the first test.
pub(crate) fn find_places(words: &[Arg]) -> Vec<&Arg> {
    let mut rest = words.iter().peekable();
    while let Some(option) =
        rest.next_if(|word| matches!(word.text.as_str(), "-H" | "-L" | "-P" | "-D") || word.text.starts_with("-O"))
    {
        if option.text == "-D" {
            rest.next();
        }
    }
    rest.take_while(|word| !word.text.starts_with(['-', '(', ')', '!', ','])).collect()
}

/// Returns the arguments of a command that are not options. Every word after `--` is included.
fn non_option_words<'a>(words: &'a [Arg], with_value: &[&str]) -> Vec<&'a Arg> {
    let mut plain = Vec::new();
    let mut all = words.iter();
    while let Some(word) = all.next() {
        if word.text == "--" {
            plain.extend(all);
            break;
        }
        if with_value.contains(&word.text.as_str()) {
            all.next();
        } else if !word.text.starts_with('-') || word.text == "-" {
            plain.push(word);
        }
    }
    plain
}

#[cfg(test)]
mod tests;
