//! Detects what has changed since the user left a session: files that the session had changed, the branch, and the
//! policy. Files are compared by content, because modification times are unreliable.

use super::context::AppContext;
use super::session::Session;
use crate::ports::Baselines;
use crate::protocol::{PolicyLayer, SessionId};
use crate::store::SessionSummary;
use crate::workspace::git::Repository;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of files that are checked.
const MAX: usize = 300;
/// Maximum number of files named in a sentence.
const MAX_NAMED: usize = 3;

/// Returns a sentence for each change, to show to the user when the session is resumed.
pub(crate) async fn describe_changes(session: &Session, app: &AppContext, layers: &[PolicyLayer]) -> Vec<String> {
    if session.is_new() {
        return Vec::new();
    }
    let mut told = Vec::new();
    told.extend(describe_files(&files(app, session.id()).await).map(|files| format!("since you left this session, {files}")));
    let summary = session.store.find(session.id().as_str()).ok();
    told.extend(summary.as_ref().and_then(branch));
    told.extend(policy(session.state.policy.as_deref(), layers));
    told
}

/// Returns the files that the session changed and that have changed again since then. Paths have the form that the user
/// would type.
pub(crate) async fn files(app: &AppContext, id: &SessionId) -> Vec<String> {
    let snapshots = app.snapshots();
    let Ok(trail) = snapshots.trail(id.clone(), 0).await else { return Vec::new() };
    let mut left: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for touch in trail.files {
        match touch.after {
            Some(after) => drop(left.insert(touch.path, after)),
            None => drop(left.remove(&touch.path)),
        }
    }
    let paths: Vec<PathBuf> = left.keys().take(MAX).cloned().collect();
    let Ok(standing) = snapshots.current_states(paths.clone()).await else { return Vec::new() };
    let changed = paths.iter().zip(standing).filter(|(path, now)| left.get(*path).is_some_and(|left| *left != now.mark));
    changed.map(|(path, _)| name(path, &app.workspace)).collect()
}

fn name(path: &Path, workspace: &Path) -> String {
    path.strip_prefix(workspace).unwrap_or(path).display().to_string()
}

/// Returns a phrase such as `src/main.rs changed` or `a, b, c and 4 more changed`. Returns `None` if no file has
/// changed.
pub(crate) fn describe_files(files: &[String]) -> Option<String> {
    let named: Vec<&str> = files.iter().take(MAX_NAMED).map(String::as_str).collect();
    match files.len().saturating_sub(MAX_NAMED) {
        _ if files.is_empty() => None,
        0 => Some(format!("{} changed", named.join(", "))),
        more => Some(format!("{} and {more} more changed", named.join(", "))),
    }
}

pub(crate) fn branch(summary: &SessionSummary) -> Option<String> {
    let repository = Repository::find(Path::new(&summary.workspace))?;
    let (then, now) = (repository.branch_at(summary.updated)?, repository.branch()?);
    (then != now).then(|| format!("the branch was {then} and is now {now}"))
}

/// Returns a sentence if the policy layers in effect have changed since then.
fn policy(then: Option<&[PolicyLayer]>, now: &[PolicyLayer]) -> Option<String> {
    let then = then?;
    let known = |layers: &[PolicyLayer]| {
        let one = |layer: &PolicyLayer| (layer.scope.clone(), layer.bundle_version.clone(), layer.file.clone());
        layers.iter().map(one).collect::<Vec<_>>()
    };
    let words = |layers: &[PolicyLayer]| layers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    (known(then) != known(now)).then(|| {
        let (then, now) = (words(then), words(now));
        if then == now {
            format!("the policy comes from different files than when you left this session ({now})")
        } else {
            format!("the policy was {then} when you left this session and is now {now}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(scope: &str, version: Option<&str>) -> PolicyLayer {
        PolicyLayer {
            scope: scope.to_owned(),
            bundle_version: version.map(str::to_owned),
            expires_at: None,
            max_input_tokens: None,
            file: None,
            rules: Vec::new(),
        }
    }

    #[test]
    fn the_first_changed_files_are_named_and_the_rest_is_counted() {
        let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(describe_files(&files(&[])), None);
        assert_eq!(describe_files(&files(&["a", "b"])).as_deref(), Some("a, b changed"));
        assert_eq!(describe_files(&files(&["a", "b", "c", "d", "e"])).as_deref(), Some("a, b, c and 2 more changed"));
    }

    #[test]
    fn only_a_changed_policy_is_reported() {
        let then = vec![layer("built-in", None), layer("user", Some("7"))];
        assert_eq!(policy(Some(&then), &then), None);
        assert_eq!(policy(None, &then), None);
        let told = policy(Some(&then), &[layer("built-in", None)]).unwrap();
        assert_eq!(told, "the policy was built-in, user (bundle 7) when you left this session and is now built-in");
    }
}
