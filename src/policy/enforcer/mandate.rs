//! Determines the mandate of an approved plan, which consists of the actions that the plan allows until its task ends.
//! Some actions still need approval.

use super::Enforcer;
use crate::policy::interpreters;
use crate::policy::layer_verdict::ActionFinding;
use crate::policy::permit::Grant;
use crate::protocol::{Action, Coverage, Mode, Place, Risk, Target, VerdictKind};
use jiff::Timestamp;
use std::path::Path;
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
    let ActionFinding { decided, risk, critical, remember, .. } = enforcer.judge_action(action, now);
    match decided.verdict {
        VerdictKind::Deny => return Err(Coverage::Denied { reason: format!("{} ({})", decided.reason, decided.rule) }),
        VerdictKind::Allow => return Err(Coverage::Allowed { rule: decided.rule }),
        VerdictKind::Ask => {}
    }
    let why = if decided.locked {
        Some(super::grants::locked_reason(&decided.rule, &decided.reason))
    } else if critical {
        Some(format!("critical risk: {}", decided.reason))
    } else if risk > Risk::Medium {
        Some(format!("high risk: {}", decided.reason))
    } else {
        None
    };
    if let Some(reason) = why {
        return Err(Coverage::Asks { reason });
    }
    let Some(grant) = remember else { return Err(Coverage::Asks { reason: decided.reason }) };
    if let Grant::Command { words, .. } = &grant
        && let Some(reason) = runs_other_code(words)
    {
        return Err(Coverage::Asks { reason });
    }
    // A grant under which the action would still need approval does not cover it.
    let mut trial = enforcer.clone();
    trial.mandate.push(grant.clone());
    let told = trial.explain(slice::from_ref(action), now);
    match told.verdict {
        VerdictKind::Allow => Ok(grant),
        VerdictKind::Ask | VerdictKind::Deny => Err(Coverage::Asks { reason: told.reason }),
    }
}

/// Returns why no plan can allow an action, regardless of the rules.
fn never_covered(action: &Action, roots: &[std::path::PathBuf]) -> Option<String> {
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
fn wide(target: &Target, roots: &[std::path::PathBuf]) -> Option<String> {
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

/// Returns the reason if a command runs code that the plan does not show.
fn runs_other_code(words: &[String]) -> Option<String> {
    let program = words.first().map(|word| word.rsplit('/').next().unwrap_or(word))?;
    let named = words.first().is_some_and(|word| interpreters::kind(word).is_some());
    (named || interpreters::kind(program).is_some())
        .then(|| format!("`{program}` is an interpreter or task runner, so it runs code that the plan does not show"))
}

/// Returns the name of the tool that performs an action.
fn tool_of(action: &Action) -> &'static str {
    match action {
        Action::Exec { .. } => "RunCommand",
        Action::Fetch { .. } => "HttpRequest",
        _ => "WriteFile",
    }
}
