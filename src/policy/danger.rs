//! Determines how dangerous a command is: its riskiest effect, and whether it may run without approval.

use super::effect::{CommandEffect, worst_effect};
use super::git::{overwrites_reference, without_message};
use super::interpreters::{is_kept_in_a_copy, kind, program_word_count};
use super::paths::{Context, Sandbox};
use super::program_kinds::{DELETING, INTERPRETERS, NETWORK, PRIVILEGED, installs, is_known_program, recursive_change};
use super::shell::builtins::destination;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{COMPUTED, Invocation, SimpleCommand};
use crate::protocol::Risk;
use std::path::Path;

/// Danger of one part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartDanger {
    /// Worst effect, or `None` if the part only reads or only changes workspace files in the sandbox.
    pub effect: Option<CommandEffect>,
    pub risk: Risk,
    pub critical: bool,
    /// Whether the part only reads.
    pub reads_only: bool,
    /// Whether the part needs approval every time it runs.
    pub never_remembered: bool,
    /// Whether the part deletes nothing, does not use the network, and writes only in the workspace.
    pub stays_here: bool,
}

impl PartDanger {
    /// Returns whether mode `auto` may run the part in the sandbox without approval.
    pub(crate) fn can_run_unattended(&self) -> bool {
        self.stays_here && !self.critical && self.risk <= Risk::Medium
    }
}

/// Determines how dangerous one part of a command line is.
pub(crate) fn for_part(part: &SimpleCommand, context: &Context, cwd: &Path) -> PartDanger {
    let conduct = assess_conduct(part, context, cwd);
    let effect = worst_effect(part, context, cwd);
    let unknown = || part.invocations.iter().any(|one| !is_known_program(one));
    let otherwise = match context.sandbox {
        Sandbox::Absent if !conduct.reads_only && unknown() => Risk::Medium,
        Sandbox::Absent | Sandbox::Present => Risk::Low,
    };
    let (risk, critical) = effect.as_ref().map_or((otherwise, false), |effect| (effect.risk.max(otherwise), effect.is_critical));
    PartDanger {
        risk,
        critical,
        reads_only: conduct.reads_only,
        never_remembered: conduct.never_remembered,
        stays_here: conduct.stays_here,
        effect,
    }
}

/// Properties of a part that determine whether it may run without approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conduct {
    reads_only: bool,
    never_remembered: bool,
    stays_here: bool,
}

impl Conduct {
    const UNSEEN: Self = Self { reads_only: false, never_remembered: true, stays_here: false };

    fn combine(self, other: Self) -> Self {
        Self {
            reads_only: self.reads_only && other.reads_only,
            never_remembered: self.never_remembered || other.never_remembered,
            stays_here: self.stays_here && other.stays_here,
        }
    }
}

fn assess_conduct(part: &SimpleCommand, context: &Context, cwd: &Path) -> Conduct {
    let part = &*without_message(part);
    let first = Conduct { reads_only: !part.invocations.is_empty(), never_remembered: false, stays_here: true };
    let mut conduct = part.invocations.iter().map(conduct_of_invocation).fold(first, Conduct::combine);
    for redirect in &part.redirects {
        let inside = redirect.target.as_ref().is_some_and(|target| context.in_workspace(&context.resolve(&target.text, cwd)));
        conduct.never_remembered = true;
        conduct.reads_only &= redirect.reads_only;
        conduct.stays_here &= redirect.reads_only || inside;
    }
    if part.unknown_code || part.floors.contains(&COMPUTED) || (part.reads_code && part.piped) {
        conduct = conduct.combine(Conduct::UNSEEN);
    }
    conduct.never_remembered |= !part.floors.is_empty() || part.reads_code;
    conduct.reads_only &= part.floors.is_empty() && !part.reads_code;
    conduct
}

/// Returns whether a part discards uncommitted work. Such a part always needs approval, regardless of rules.
pub(crate) fn discards(part: &SimpleCommand) -> bool {
    part.invocations.iter().any(super::git::discards)
}

/// Returns whether a command line deletes files that git ignores. Workspace snapshots do not contain such files.
pub fn deletes_ignored_files(line: &str) -> bool {
    super::shell::read(line).parts.iter().flat_map(|part| &part.invocations).any(super::git::deletes_ignored)
}

/// Returns the paths that a command line deletes, relative to its working directory and spelled as in the line.
/// Includes only paths that can be determined before the line runs, and none if the line changes directory.
pub fn deleted_paths(line: &str) -> Vec<String> {
    let line = super::shell::read(line);
    let all = || line.parts.iter().flat_map(|part| &part.invocations);
    if all().any(|invocation| matches!(invocation.base(), "cd" | "pushd" | "popd" | "chroot")) {
        return Vec::new();
    }
    let mut places = Vec::new();
    for invocation in all().filter(|invocation| matches!(invocation.base(), "rm" | "rmdir" | "unlink" | "shred")) {
        let words = &invocation.argv[1..];
        let end = words.iter().position(|word| word.text == "--");
        let operands = words.iter().enumerate().filter(|(at, word)| match end {
            Some(end) if *at >= end => *at > end,
            Some(_) | None => !word.text.starts_with('-'),
        });
        let known =
            operands.map(|(_, word)| word).filter(|word| word.is_known() && !word.glob && !word.tilde && !word.text.is_empty());
        for word in known {
            if !places.contains(&word.text) {
                places.push(word.text.clone());
            }
        }
    }
    places
}

/// Returns the URLs that a command line passes to programs that use the network, spelled as in the line. Includes only
/// URLs that can be determined before the line runs.
pub fn addresses(line: &str) -> Vec<String> {
    let line = super::shell::read(line);
    let invocations = line.parts.iter().flat_map(|part| &part.invocations);
    let asks = |one: &&Invocation| NETWORK.contains(&one.base()) || installs(one.base(), &one.argv);
    let words = invocations.filter(asks).flat_map(|one| &one.argv[1..]);
    let mut addresses = Vec::new();
    for word in words.filter(|word| word.is_known() && (word.text.starts_with("https://") || word.text.starts_with("http://"))) {
        if !addresses.contains(&word.text) {
            addresses.push(word.text.clone());
        }
    }
    addresses
}

/// Returns the effect that a command line has beyond the workspace files, as a phrase that follows the program name.
/// Returns `None` if no such effect is known.
pub fn lasting(line: &str) -> Option<&'static str> {
    let line = super::shell::read(line);
    let all = || line.parts.iter().flat_map(|part| &part.invocations);
    let local = |one: &Invocation| {
        one.base() == "git" && one.argv.iter().any(|arg| matches!(arg.text.as_str(), "clean" | "reset" | "filter-branch"))
    };
    if all().any(|one| NETWORK.contains(&one.base()) || (installs(one.base(), &one.argv) && !local(one))) {
        Some("used the network")
    } else if all().any(|one| PRIVILEGED.contains(&one.base())) {
        Some("acted on the whole system")
    } else {
        None
    }
}

/// Returns why a part always needs approval, as a verb with its object. Returns `None` if the part is not risky.
pub(crate) fn always_ask_reason(part: &SimpleCommand, danger: &PartDanger) -> Option<String> {
    let part = &*without_message(part);
    let in_a_copy = is_kept_in_a_copy(part);
    let any = |list: &[&str]| part.invocations.iter().any(|one| list.contains(&one.base()));
    let calls_out = any(NETWORK) || part.invocations.iter().any(|one| installs(one.base(), &one.argv));
    let lasting = any(PRIVILEGED) || any(DELETING) || calls_out || danger.critical || danger.risk == Risk::High;
    if let Some(effect) = danger.effect.as_ref().filter(|_| lasting || discards(part)) {
        return Some(effect.sentence.clone());
    }
    let by_kind = |one: &Invocation| kind(&one.argv[0].text).is_some();
    if let Some(why) = part.invocations.iter().filter(|one| by_kind(one)).find_map(|one| program_word_count(&one.argv).err()) {
        return Some(why);
    }
    let interprets = |one: &Invocation| INTERPRETERS.contains(&one.base()) || one.base().starts_with("python");
    let why = if part.invocations.iter().any(|one| interprets(one) && !by_kind(one)) {
        "is a wrapper or an interpreter, which can run anything"
    } else if lasting || part.invocations.iter().any(|one| recursive_change(one.base(), &one.argv)) {
        "cannot easily be undone"
    } else if part.redirects.iter().any(|redirect| !redirect.reads_only) {
        "writes to a file"
    } else if !part.redirects.is_empty() {
        "redirects input from a file"
    } else if danger.never_remembered && !in_a_copy && part.floors.is_empty() {
        "needs approval each time"
    } else {
        return None;
    };
    Some(why.to_owned())
}

fn conduct_of_invocation(invocation: &Invocation) -> Conduct {
    let (argv, name) = (&invocation.argv, invocation.base());
    let has = |list: &[&str]| list.contains(&name);
    let deletes = has(DELETING) || name == "find" && argv.iter().any(|arg| arg.text == "-delete");
    let privileged = has(PRIVILEGED) || name.starts_with("mkfs.");
    let calls_out = has(NETWORK) || installs(name, argv);
    Conduct {
        reads_only: argv[0].text == name
            && (matches!(check_options(argv), OptionVerdict::Reads { .. }) || destination(argv).is_some()),
        never_remembered: privileged || deletes || calls_out || has(INTERPRETERS) || name.starts_with("python"),
        stays_here: !(privileged || deletes || calls_out || recursive_change(name, argv) || overwrites_reference(invocation)),
    }
}
