//! Determines the mandate of an approved plan, which consists of the actions that the plan allows until its task ends.
//! Some actions still need approval.

use super::Enforcer;
use crate::policy::command;
use crate::policy::layer_verdict::ActionFinding;
use crate::policy::permit::Grant;
use crate::policy::planned_commands::{PlannedCommand, planned_command};
use crate::protocol::{Action, Coverage, Mode, Place, Risk, Target, VerdictKind};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::slice;

/// Returns the enforcer used to determine which actions a plan allows. It has no grants and a mode that allows nothing
/// automatically, because grants and modes may end before the task does.
pub(super) fn for_mandate(enforcer: &Enforcer) -> Enforcer {
    let mut trial = enforcer.clone();
    trial.context.mode = Mode::Ask;
    trial.grants.clear();
    trial.mandate.clear();
    trial
}

/// Returns the grant that approving a plan creates for one of its actions.
///
/// # Errors
/// Returns the reason if approving the plan does not allow the action.
pub(super) fn cover(enforcer: &Enforcer, action: &Action, now: Timestamp) -> Result<Grant, Coverage> {
    if let Some(reason) = never_covered(action, enforcer.context.roots.as_slice()) {
        return Err(Coverage::Asks { reason });
    }
    if let Err(denial) = enforcer.offers(tool_of(action)) {
        return Err(Coverage::Denied { reason: denial.reason });
    }
    let finding = enforcer.judge_action(action, now);
    match finding.decided.verdict {
        VerdictKind::Deny => {
            return Err(Coverage::Denied { reason: format!("{} ({})", finding.decided.reason, finding.decided.rule) });
        }
        VerdictKind::Allow => return Err(Coverage::Allowed { rule: finding.decided.rule }),
        VerdictKind::Ask => {}
    }
    if let Some(reason) = obstacle(&finding) {
        return Err(Coverage::Asks { reason });
    }
    if let Action::Exec { command, cwd } = action
        && let Err(reason) = check_command(enforcer, command, cwd, now)
    {
        return Err(Coverage::Asks { reason });
    }
    let Some(grant) = finding.remember else { return Err(Coverage::Asks { reason: finding.decided.reason }) };
    // A grant under which the action would still need approval does not cover it.
    let mut trial = enforcer.clone();
    trial.mandate.push(grant.clone());
    let told = trial.explain(slice::from_ref(action), now);
    match told.verdict {
        VerdictKind::Allow => Ok(grant),
        VerdictKind::Ask | VerdictKind::Deny => Err(Coverage::Asks { reason: told.reason }),
    }
}

/// Returns why no plan can allow an action with this verdict, or `None` if a plan can.
fn obstacle(ActionFinding { decided, risk, critical, .. }: &ActionFinding) -> Option<String> {
    if decided.locked {
        Some(super::grants::locked_reason(&decided.rule, &decided.reason))
    } else if *critical {
        Some(format!("critical risk: {}", decided.reason))
    } else if *risk > Risk::Medium {
        Some(format!("high risk: {}", decided.reason))
    } else {
        None
    }
}

/// Checks whether the policy knows what the only command in a line does, and whether a plan can cover each file in its
/// arguments. Returns `Ok` for any other line, because no grant matches it.
fn check_command(enforcer: &Enforcer, line: &str, cwd: &Target, now: Timestamp) -> Result<(), String> {
    let mut checked = Ok(());
    command::only_command(line, cwd, &enforcer.scene(cwd, now), |_, part, scene| {
        let resolve = |path: &str| enforcer.context.resolve(&literal_path(path), scene.cwd);
        checked = planned_command(&part.invocations[0].argv).and_then(|command| match command {
            PlannedCommand::Reads(paths) => {
                let is_outside = |path: &&str| *path != "-" && !enforcer.context.in_workspace(&resolve(path));
                paths.into_iter().find(is_outside).map_or(Ok(()), |path| Err(format!("`{path}` is outside the workspace")))
            }
            PlannedCommand::Writes(files) => {
                files.into_iter().try_for_each(|path| check_file(enforcer, path, resolve(path), now))
            }
        });
    });
    checked
}

/// Checks whether a plan can cover a command that may write to this path.
fn check_file(enforcer: &Enforcer, given: &str, real: PathBuf, now: Timestamp) -> Result<(), String> {
    let roots = &enforcer.context.roots;
    if !enforcer.context.in_workspace(&real) || roots.iter().any(|root| root.starts_with(&real)) {
        return Err(format!("`{given}` is not a file in the workspace"));
    }
    let finding = enforcer.judge_action(&Action::Write { target: file(given, real) }, now);
    match finding.decided.verdict {
        VerdictKind::Deny => Err(format!("`{given}`: {} ({})", finding.decided.reason, finding.decided.rule)),
        VerdictKind::Ask => obstacle(&finding).map_or(Ok(()), |reason| Err(format!("`{given}`: {reason}"))),
        VerdictKind::Allow => Ok(()),
    }
}

fn file(given: &str, real: PathBuf) -> Target {
    Target { given: given.to_owned(), real, place: Place::Missing }
}

/// Returns a word in the form in which a leading `~` is an ordinary character.
fn literal_path(word: &str) -> String {
    if word.starts_with('~') { format!("./{word}") } else { word.to_owned() }
}

/// Returns whether the approved plan names a change that the command `run` made in a copy of the workspace.
pub(super) fn names(enforcer: &Enforcer, run: &[Action], change: &Action, now: Timestamp) -> bool {
    let Action::Write { target } = change else { return false };
    if enforcer.explain(slice::from_ref(change), now).verdict == VerdictKind::Allow {
        return true;
    }
    let is_argument = |action: &Action| match action {
        Action::Exec { command, cwd } => is_written_argument(enforcer, command, cwd, &target.real, now),
        _ => false,
    };
    let finding = enforcer.judge_action(change, now);
    finding.decided.verdict == VerdictKind::Ask && obstacle(&finding).is_none() && run.iter().any(is_argument)
}

/// Returns whether a path is a file in the arguments of a command that a plan can cover.
fn is_written_argument(enforcer: &Enforcer, line: &str, cwd: &Target, path: &Path, now: Timestamp) -> bool {
    let mut found = false;
    command::only_command(line, cwd, &enforcer.scene(cwd, now), |_, part, scene| {
        if let Ok(PlannedCommand::Writes(files)) = planned_command(&part.invocations[0].argv) {
            found = files.into_iter().any(|file| enforcer.context.resolve(&literal_path(file), scene.cwd) == path);
        }
    });
    found
}

/// Returns why no plan can allow an action, regardless of the rules.
fn never_covered(action: &Action, roots: &[PathBuf]) -> Option<String> {
    match action {
        Action::Write { target } => wide(target, roots),
        Action::Exec { .. } => None,
        Action::Fetch { method, .. } if method == "GET" || method == "HEAD" => None,
        Action::Fetch { .. }
        | Action::Read { .. }
        | Action::Delete { .. }
        | Action::Search { .. }
        | Action::Named { .. }
        | Action::Open { .. }
        | Action::Upload { .. }
        | Action::Custom { .. }
        | Action::Invoke { .. } => Some(format!("a plan cannot cover {}", action.capability())),
    }
}

/// Returns why a path is too broad for a plan.
fn wide(target: &Target, roots: &[PathBuf]) -> Option<String> {
    let path: &Path = &target.real;
    if path == Path::new("/") {
        return Some("the path is the root of the file system; name each file".to_owned());
    }
    if roots.iter().any(|root| root.starts_with(path)) {
        return Some("the path contains the whole workspace; name each file".to_owned());
    }
    match target.place {
        Place::Directory => Some("the path is a directory; name each file".to_owned()),
        Place::Special => Some("the path is not a regular file".to_owned()),
        Place::File { .. } | Place::Missing => None,
    }
}

/// Returns the name of the tool that performs an action.
fn tool_of(action: &Action) -> &'static str {
    match action {
        Action::Exec { .. } => "RunCommand",
        Action::Fetch { .. } => "HttpRequest",
        _ => "WriteFile",
    }
}
