//! Title of an approval prompt: the call's most severe effect as a sentence, or the call's name.

use super::rows::TIGHT;
use crate::protocol::{Approval, CommandPart, Containment, EffectKind, Effects, group_digits};
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

/// Maximum number of rows of a title in the head. The body shows a longer one.
const HEAD_ROWS: usize = 3;
/// Minimum width, in cells, of the part of a title in the first row of the head.
const MIN_FIRST: usize = 8;

impl DialogTitle {
    /// Returns the title as rows for the body. Returns no rows if the head shows all of it.
    pub(crate) fn rows(&self, width: u16) -> Vec<String> {
        if self.fits(width) || !self.head_rows(width).is_empty() {
            return Vec::new();
        }
        text::wrap_exact(&self.words, usize::from(width).max(1)).into_iter().map(|part| self.words[part].to_owned()).collect()
    }

    /// Returns the title as several rows for the head, of which the first is beside the risk. Returns no rows if the
    /// title fits into one row, or is too long for the head.
    pub(crate) fn head_rows(&self, width: u16) -> Vec<String> {
        if self.fits(width) {
            return Vec::new();
        }
        let room = usize::from(width).saturating_sub(self.beside(width)).max(MIN_FIRST);
        let first = text::wrap_exact(&self.words, room).into_iter().next().map_or(0, |part| part.end);
        let (first, rest) = self.words.split_at(first);
        let rest = rest.trim_start_matches(' ');
        let parts = text::wrap_exact(rest, usize::from(width).max(1)).into_iter().map(|part| rest[part].to_owned());
        let rows: Vec<String> = [first.to_owned()].into_iter().chain(parts).collect();
        if rows.len() > HEAD_ROWS { Vec::new() } else { rows }
    }

    fn beside(&self, width: u16) -> usize {
        if width + GUTTER < TIGHT { self.beside.narrow } else { self.beside.wide }
    }

    fn fits(&self, width: u16) -> bool {
        text::width(&self.words) + self.beside(width) <= width.into()
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
    approval.proposal.unsandboxed
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
        return "Run the command again?".to_owned();
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
        (_, deleted) => format!("The command would change {count}, {} of them deleted", group_digits(deleted as u64)),
    }
}

/// Returns whether the call uses a tool of an MCP server or of the back end.
pub(crate) fn is_server_call(approval: &Approval) -> bool {
    approval.tool_name.starts_with("Mcp.")
}

/// Returns the summary of a call that is not a command, on one line and without control characters. The summary of a
/// call to a server omits the arguments, because the prompt shows them below.
pub(crate) fn summary(approval: &Approval) -> String {
    let proposed = &approval.proposal.summary;
    let is_proposed = is_server_call(approval) && !proposed.is_empty();
    let summary = if is_proposed { proposed } else { &approval.action_summary };
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
        // The command below shows the names as they are typed.
        let effect = to_imperative(&text::reveal_line(effect)).replace('`', "");
        return match part.containment.filter(|_| is_held) {
            Some(Containment::Blocked) => format!("{effect} — the sandbox would block this"),
            Some(Containment::OnlyWorkspace) => format!("{effect} — the sandbox would limit this to the workspace"),
            None => effect,
        };
    }
    match tool {
        "CliSession" => "Start a session".to_owned(),
        "CliWrite" => "Type into a session".to_owned(),
        "RunCommand" if approval.proposal.background => "Run a command in the background".to_owned(),
        "RunCommand" => own_sentence(approval).unwrap_or_else(|| "Run a command".to_owned()),
        // Custom tools and tools of a policy have their own names.
        own => format!("Run the tool {}", text::reveal_line(own)),
    }
}

/// Returns the sentence with which aye summarizes the command, such as `Commit 3 files to main: "message"`. Any other
/// command has a summary that quotes its line.
fn own_sentence(approval: &Approval) -> Option<String> {
    let summary = approval.proposal.summary.as_str();
    (!summary.is_empty() && !summary.starts_with("Run: ")).then(|| text::reveal_name(summary))
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
    use crate::protocol::{IN_BACKGROUND, OUTSIDE_SANDBOX, Proposal};
    use crate::tui::tests::fixtures::command_approval;

    #[test]
    fn a_command_cannot_set_its_own_title() {
        for suffix in [IN_BACKGROUND, OUTSIDE_SANDBOX] {
            let mut approval = command_approval("a");
            approval.parts.clear();
            approval.amendable.edited = true;
            approval.action_summary = format!("$ frobnicate x #{suffix}");
            assert_eq!(of_command(&approval), "Run a command", "{suffix}");
            assert!(!is_unsandboxed(&approval), "{suffix}");
        }
        let of_proposal = |proposal| of_command(&Approval { parts: Vec::new(), proposal, ..command_approval("a") });
        assert_eq!(of_proposal(Proposal { background: true, ..Proposal::default() }), "Run a command in the background");
        assert_eq!(of_proposal(Proposal { unsandboxed: true, ..Proposal::default() }), "Run once outside the sandbox");
        let of_summary = |summary: &str| of_proposal(Proposal { summary: summary.to_owned(), ..Proposal::default() });
        assert_eq!(of_summary("Commit 3 files to main: \"Add x\""), "Commit 3 files to main: \"Add x\"");
        assert_eq!(of_summary("Run: Commit 3 files"), "Run a command");
    }

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
