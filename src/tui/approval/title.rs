//! Title of an approval prompt: the call's most severe effect as a sentence, or the call's name.

use super::rows::TIGHT;
use crate::protocol::{Approval, CommandPart, Containment, EffectKind, Effects, OUTSIDE_SANDBOX};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::metrics::GUTTER;
use std::cmp::Reverse;

/// Title text, and the number of cells in the head that it cannot use.
#[derive(Debug)]
pub(crate) struct DialogTitle {
    pub words: String,
    pub beside: HeadSuffix,
}

/// Number of cells on the right of the head that the title cannot use, including the gap before them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct HeadSuffix {
    pub wide: usize,
    /// Number of cells on narrow screens, where the right side of the head is shorter.
    pub narrow: usize,
}

impl DialogTitle {
    /// Returns the title as rows for the body. Returns no rows if the title fits into the head.
    pub(crate) fn rows(&self, width: u16) -> Vec<String> {
        let beside = if width + GUTTER < TIGHT { self.beside.narrow } else { self.beside.wide };
        if text::width(&self.words) + beside <= width.into() {
            Vec::new()
        } else {
            text::wrap_exact(&self.words, usize::from(width).max(1)).into_iter().map(|part| self.words[part].to_owned()).collect()
        }
    }
}

/// Returns the index of the command part whose effect becomes the title, which is the riskiest one. If several parts
/// are equally risky, the last is chosen, because it may run the output of earlier parts. Returns `None` if the title
/// has another source.
pub(crate) fn titled_part(approval: &Approval) -> Option<usize> {
    let has_own_title = approval.effects.is_some() || !approval.opens.is_empty() || is_unsandboxed(approval);
    if approval.tool_name != "RunCommand" || has_own_title {
        return None;
    }
    sort_by_risk(&approval.parts).into_iter().next().filter(|at| approval.parts[*at].effect.is_some())
}

/// Returns the indexes of the command parts, riskiest first. Of equally risky parts, the last one comes first.
pub(crate) fn sort_by_risk(parts: &[CommandPart]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts.len()).rev().collect();
    order.sort_by_key(|at| Reverse((parts[*at].critical, parts[*at].risk, parts[*at].effect.is_some())));
    order
}

/// Returns whether the user chose to run the command outside the sandbox.
pub(crate) fn is_unsandboxed(approval: &Approval) -> bool {
    approval.amendable.edited && approval.action_summary.ends_with(OUTSIDE_SANDBOX)
}

/// Prefixes an approval prompt's title with the name of the agent that makes the call, if there is one.
pub(crate) fn with_agent(approval: &Approval, title: String) -> String {
    match &approval.agent {
        Some(agent) => format!("Agent {}: {title}", text::reveal_line(&agent.name)),
        None => title,
    }
}

/// Returns the title for a previewed command, which states the changes that the command would make.
pub(crate) fn of_effects(effects: &Effects) -> String {
    if effects.conflict.is_some() {
        return "Files changed since the command ran: run it again?".to_owned();
    }
    let paths = usize::try_from(effects.paths()).unwrap_or(usize::MAX);
    let deletes = |kind: &EffectKind| matches!(kind, EffectKind::Deleted { .. } | EffectKind::DirectoryDeleted { .. });
    if let ([one], 1) = (effects.files.as_slice(), paths) {
        let verb = match &one.kind {
            EffectKind::Created { .. } | EffectKind::DirectoryCreated => "create",
            kind if deletes(kind) => "delete",
            _ => "change",
        };
        return format!("The command would {verb} {}", text::reveal_name(&one.path));
    }
    let deleted = effects.files.iter().filter(|file| deletes(&file.kind)).count();
    let is_file = |kind: &EffectKind| !matches!(kind, EffectKind::DirectoryCreated | EffectKind::DirectoryDeleted { .. });
    let noun = if effects.files.iter().all(|file| is_file(&file.kind)) { "file" } else { "path" };
    let count = format_count(paths, noun);
    match (paths, deleted) {
        (0, _) => "The command changed no files".to_owned(),
        (_, 0) => format!("The command would change {count}"),
        (_, deleted) if deleted == paths => format!("The command would delete {count}"),
        (_, deleted) => format!("The command would change {count}, {deleted} of them deleted"),
    }
}

/// Returns the summary of a call that is not a command, on one line and without control characters.
pub(crate) fn summary(approval: &Approval) -> String {
    let summary = &approval.action_summary;
    if summary.is_empty() { text::reveal_line(&approval.title) } else { text::reveal_name(summary) }
}

/// Returns the title for a command that has not run yet: its most severe effect, or the kind of call.
pub(crate) fn of_command(approval: &Approval) -> String {
    let tool = approval.tool_name.as_str();
    if !approval.opens.is_empty() {
        return blocked_title(approval);
    }
    if is_unsandboxed(approval) {
        return "Run once outside the sandbox".to_owned();
    }
    if let Some(part) = titled_part(approval).map(|at| &approval.parts[at])
        && let Some(effect) = part.effect.as_deref()
    {
        let is_held = approval.command.as_ref().is_some_and(|command| !command.is_unheld() && !command.has_own_sandbox);
        let effect = to_imperative(&text::reveal_line(effect));
        return match part.containment.filter(|_| is_held) {
            Some(Containment::Blocked) => format!("{effect} — the sandbox would block this"),
            Some(Containment::OnlyWorkspace) => format!("{effect} — the sandbox would limit this to the workspace"),
            None => effect,
        };
    }
    match tool {
        "CliSession" => "Start a session".to_owned(),
        "CliWrite" => "Type into a session".to_owned(),
        "RunCommand" if approval.action_summary.ends_with(" (in the background)") => "Run a command in the background".to_owned(),
        "RunCommand" => "Run a command".to_owned(),
        // Custom tools and tools of a policy have their own names.
        own => format!("Run the tool {}", text::reveal_line(own)),
    }
}

/// Maximum length, in characters, at which the blocked access is named in the title.
const MAX_BLOCKED: usize = 40;

/// Returns the blocked access if it is the only one and short enough for the title.
fn single_blocked_access(approval: &Approval) -> Option<String> {
    let [one] = approval.opens.as_slice() else { return None };
    Some(text::reveal_line(&one.to_string())).filter(|name| name.chars().count() <= MAX_BLOCKED)
}

/// Returns a title such as `Blocked: example.com:443. Run again with access?`.
fn blocked_title(approval: &Approval) -> String {
    let what =
        single_blocked_access(approval).map_or_else(|| "Blocked by the sandbox".to_owned(), |name| format!("Blocked: {name}"));
    format!("{what}. Run again with access?")
}

/// Describes the access that approval would grant for another run. Names the blocked access first, unless the title
/// already does. Returns `None` if approval would grant none.
pub(super) fn opens(approval: &Approval) -> Option<String> {
    let next = approval.next_run()?;
    let opens: Vec<String> = approval.opens.iter().map(|opened| text::reveal_line(&opened.to_string())).collect();
    Some(if single_blocked_access(approval).is_some() { next } else { format!("Blocked: {}. {next}", opens.join(", ")) })
}

/// Converts a description of an effect, such as `deletes your home directory`, to the imperative: `Delete your home
/// directory`.
fn to_imperative(effect: &str) -> String {
    let (verb, rest) = effect.split_once(' ').unwrap_or((effect, ""));
    let verb = base(verb);
    let mut letters = verb.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{} {rest}", letters.as_str()).trim_end().to_owned()
}

/// Returns the base form of a verb in the third person singular, such as `delete` for `deletes`.
fn base(verb: &str) -> String {
    let is_verb = verb.bytes().all(|byte| byte.is_ascii_lowercase());
    let ends = |end: &str| is_verb && verb.ends_with(end);
    match verb {
        "" => String::new(),
        _ if ends("ies") => format!("{}y", &verb[..verb.len() - 3]),
        _ if ["shes", "ches", "sses", "xes", "zes", "oes"].into_iter().any(ends) => verb[..verb.len() - 2].to_owned(),
        _ if ends("s") && !ends("ss") => verb[..verb.len() - 1].to_owned(),
        _ => verb.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_state_the_effect_in_the_imperative() {
        let cases = [
            ("publishes commits to `origin`", "Publish commits to `origin`"),
            ("deletes your home directory", "Delete your home directory"),
            ("runs downloaded code from `example.com`", "Run downloaded code from `example.com`"),
            ("runs `prettier`, downloading it first if needed", "Run `prettier`, downloading it first if needed"),
            ("copies `a` to `b`, outside the workspace", "Copy `a` to `b`, outside the workspace"),
            ("erases the disk `/dev/sda`", "Erase the disk `/dev/sda`"),
            ("could send `.env`, which can contain credentials", "Could send `.env`, which can contain credentials"),
            ("", ""),
        ];
        for (effect, title) in cases {
            assert_eq!(to_imperative(effect), title);
        }
    }
}
