//! Verdicts on file actions: capability, place, block list, allow list, approval.

use super::decided::{Decided, Finding};
use super::layer::{FileRules, Ready, Scope};
use super::paths::{Context, credentials, of_the_machine, protected};
use super::permit::Grant;
use super::shell::hides;
use crate::protocol::{Action, Place, Risk, Target};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Delete,
}

impl Access {
    fn rules(self, layer: &Ready) -> Option<&FileRules> {
        match self {
            Self::Read => layer.read.as_ref(),
            Self::Write => layer.write.as_ref(),
            Self::Delete => layer.delete.as_ref(),
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Delete => "deletes",
        }
    }
}

/// What all layers together say of one file action.
pub fn judge(access: Access, action: &Action, target: &Target, layers: &[Ready], context: &Context) -> Finding {
    let path = target.real.as_path();
    let guarded = guard(access, path, layers, context);
    let decided = layers
        .iter()
        .filter_map(|layer| one_layer(access, action.capability(), target, layer, (guarded.as_ref(), context.in_workspace(path))))
        .fold(everywhere(access, target, context), |all, one| Some(all.map_or(one.clone(), |all| all.stricter(one))));
    let special = (target.place == Place::Special)
        .then(|| Decided::deny("built-in", format!("`{}` is a device, a pipe or a socket, which is never opened", target.given)));
    // Last of equals: what stands outside is not told.
    let decided = special.into_iter().chain(decided).reduce(|special, decided| decided.stricter(special));
    let decided =
        decided.unwrap_or_else(|| Decided::deny("built-in", format!("the capability `{}` is not granted", action.capability())));
    let risk = match access {
        Access::Read => Risk::Low,
        Access::Write if guarded.is_some() || !context.in_workspace(path) => Risk::High,
        Access::Write => Risk::Medium,
        Access::Delete => Risk::High,
    };
    let plain = access == Access::Write && risk == Risk::Medium && !decided.locked;
    Finding {
        decided,
        risk,
        critical: access == Access::Delete && !context.in_workspace(path),
        reads_only: access == Access::Read,
        remember: plain.then(|| Grant::Write { path: target.real.clone() }),
        parts: Vec::new(),
    }
}

/// What holds whatever a bundle says.
fn everywhere(access: Access, target: &Target, context: &Context) -> Option<Decided> {
    let path = target.real.as_path();
    let given = &target.given;
    if context.is_own(path) {
        return Some(Decided::deny("built-in", format!("`{given}` belongs to aye itself, which no tool reaches")));
    }
    if of_the_machine(path, access != Access::Read) {
        return Some(Decided::deny("built-in", format!("`{given}` belongs to a process or the kernel, which no tool reaches")));
    }
    if access == Access::Delete
        && (context.roots.iter().chain(&context.own).any(|kept| kept.starts_with(path)) || context.home == path)
    {
        return Some(Decided::deny("built-in", format!("`{given}` holds the workspace or aye's own files")));
    }
    if access != Access::Read && hides(&path.to_string_lossy()) {
        let reason = "its name has control or invisible characters, so it is not what it looks like";
        return Some(Decided::ask("built-in", reason).locked());
    }
    context.is_too_wide().then(|| {
        let reason = format!("the workspace is so wide that aye asks before it {} anything", access.verb());
        Decided::ask("built-in", reason).locked()
    })
}

fn one_layer(
    access: Access,
    capability: &str,
    target: &Target,
    layer: &Ready,
    (guarded, inside): (Option<&Guard>, bool),
) -> Option<Decided> {
    let (path, given, scope) = (target.real.as_path(), &target.given, layer.scope);
    let Some(rules) = access.rules(layer) else {
        let reason = format!("the capability `{capability}` is not granted");
        return layer.refuses_unlisted().then(|| Decided::deny(scope.rule(1), reason));
    };
    let line = rules.files.line;
    if let Some(line) = rules.blocked.reach(path) {
        return Some(Decided::deny(scope.rule(line), format!("`{given}` is a blocked path")));
    }
    if let Some(Guard::Closed(why)) = guarded {
        return Some(Decided::deny("built-in", why.clone()));
    }
    if rules.allowed.as_ref().is_some_and(|allowed| allowed.reach(path).is_none()) {
        let place = if inside { "is not in `allowed_paths`" } else { "is outside the workspace" };
        return Some(Decided::deny(scope.rule(line), format!("`{given}` {place}")));
    }
    let mut decided = if let Some(Guard::Opened(rule)) = guarded {
        Decided::ask(rule.clone(), format!("it {} a protected place that the bundle opens", access.verb())).locked()
    } else if rules.files.requires_approval {
        Decided::ask(scope.rule(line), format!("it {} a file", access.verb()))
    } else {
        Decided::allow(scope.rule(line), format!("it {} where the bundle allows it", access.verb()))
    };
    decided.locked |= scope == Scope::Managed;
    decided.approval_rule.clone_from(&rules.files.approval_rule);
    Some(decided)
}

/// A protected place: shut, with the reason, or opened by the rule of a person or a manager.
enum Guard {
    Closed(String),
    Opened(String),
}

/// Whether the path lies in a protected place, and whether some layer opens it.
fn guard(access: Access, path: &Path, layers: &[Ready], context: &Context) -> Option<Guard> {
    if access == Access::Read {
        return to_be_read(path, layers, context);
    }
    let place = protected(path, context)?;
    let may = |layer: &&Ready| place.may_be_opened && matches!(layer.scope, Scope::User | Scope::File | Scope::Managed);
    let opens = |layer: &Ready| Some(layer.scope.rule(access.rules(layer)?.unprotected.reach(path)?));
    let opened = layers.iter().filter(may).find_map(opens);
    Some(opened.map_or_else(|| Guard::Closed(place.reason()), Guard::Opened))
}

/// Credentials are shut to reading as well, but where a person or a manager names the very place: `~` does not name `~/.ssh`.
fn to_be_read(path: &Path, layers: &[Ready], context: &Context) -> Option<Guard> {
    let found = credentials(path, context)?;
    let may = |layer: &&Ready| matches!(layer.scope, Scope::User | Scope::File | Scope::Managed);
    let names = |layer: &Ready| Some(layer.read.as_ref()?.allowed.as_ref()?.names(&found.place, path));
    let named = layers.iter().filter(may).any(|layer| names(layer) == Some(true));
    (!named).then(|| Guard::Closed(found.reason()))
}
