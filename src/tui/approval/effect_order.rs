//! Order of the effects of a command in its prompt: changed text comes first, then deleted text, then new text,
//! which loses nothing. Changes without text are only listed.

use crate::protocol::{Approval, EffectKind, EffectPart, Effects, FileDiff, FileDiffs};
use std::collections::HashSet;
use std::ops::Range;

/// Orders the diffs and the selectable parts of a command's effects.
pub(super) fn arrange_effects(mut approval: Approval) -> Approval {
    let Some(effects) = &approval.effects else { return approval };
    let diff = std::mem::take(&mut approval.proposal.diff);
    let mut names = HashSet::new();
    if !diff.iter().all(|file| file.name.as_deref().is_some_and(|name| names.insert(name))) {
        // Without distinct names, a diff cannot be assigned to an effect.
        approval.proposal.diff = diff;
        return approval;
    }
    let mut at = 0;
    let mut files: Vec<(u8, Range<usize>, FileDiff)> = Vec::new();
    for file in diff {
        let hunks = at..at + file.hunks.len();
        at = hunks.end;
        files.extend(place_of(&file, effects).map(|place| (place, hunks, file)));
    }
    files.sort_by_key(|(place, ..)| *place);
    let order: Vec<usize> = files.iter().flat_map(|(_, hunks, _)| hunks.clone()).collect();
    approval.proposal.diff = files.into_iter().map(|(.., file)| file).collect::<FileDiffs>();
    for part in &mut approval.amendable.effects {
        move_part(part, &order);
    }
    approval.amendable.effects.sort_by_key(|part| part.first);
    approval
}

/// Returns the place of a file's diff, or `None` if the list of changes names all of its effect.
fn place_of(file: &FileDiff, effects: &Effects) -> Option<u8> {
    let name = file.name.as_deref().unwrap_or_default();
    let is_below = |directory: &str| name.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let effect = effects.files.iter().find(|effect| effect.path == name);
    let effect = effect.or_else(|| effects.files.iter().find(|effect| is_below(&effect.path)));
    match effect.map(|effect| &effect.kind) {
        Some(EffectKind::Linked { .. }) => None,
        Some(_) if file.hunks.is_empty() => None,
        Some(EffectKind::Created { .. } | EffectKind::DirectoryCreated) => Some(2),
        Some(EffectKind::Deleted { .. } | EffectKind::DirectoryDeleted { .. }) => Some(1),
        Some(EffectKind::Changed { .. } | EffectKind::Renamed { .. } | EffectKind::ModeChanged { .. }) | None => Some(0),
    }
}

/// Moves a part to the new places of its hunks. `order`: the former indexes of the hunks.
fn move_part(part: &mut EffectPart, order: &[usize]) {
    let start = order.iter().position(|hunk| *hunk == part.first).filter(|_| part.first < part.end);
    // The hunks of a part are in one file, and therefore stay together.
    (part.first, part.end) = match start {
        Some(start) => (start, start + (part.end - part.first)),
        None => (order.len(), order.len()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileEffect;
    use crate::tui::tests::fixtures::effects_approval;

    fn with_diff(files: Vec<(&str, EffectKind)>, diff: &str, parts: &[(&str, Option<usize>, usize, usize)]) -> Approval {
        let mut approval = effects_approval("a");
        let file = |(path, kind): (&str, EffectKind)| FileEffect { path: path.to_owned(), kind, notes: Vec::new() };
        approval.effects.as_mut().unwrap().files = files.into_iter().map(file).collect();
        approval.proposal.diff = FileDiffs::read(diff);
        let part = |(path, hunk, first, end): &(&str, Option<usize>, usize, usize)| EffectPart {
            path: (*path).to_owned(),
            hunk: *hunk,
            name: None,
            first: *first,
            end: *end,
        };
        approval.amendable.effects = parts.iter().map(part).collect();
        approval
    }

    #[test]
    fn changed_text_comes_before_deleted_and_new_text_and_the_parts_follow() {
        let hunk = |at: usize| format!("@@ -{at},1 +{at},1 @@\n-a\n+b\n");
        let diff = format!(
            "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
             diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+src\n\
             diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
             diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+y\n\
             diff --git a/main b/main\n--- a/main\n+++ b/main\n{}{}",
            hunk(1),
            hunk(9)
        );
        let files = vec![
            ("gone", EffectKind::Deleted { bytes: 2, binary: false }),
            ("link", EffectKind::Linked { to: "src".to_owned() }),
            ("run", EffectKind::ModeChanged { from: 0o644, to: 0o755 }),
            ("main", EffectKind::Changed { bytes_before: 1, bytes_after: 1, binary: false }),
            ("new", EffectKind::Created { bytes: 2, binary: false }),
        ];
        let parts = [
            ("gone", None, 0, 1),
            ("link", None, 1, 2),
            ("run", None, 2, 2),
            ("new", None, 2, 3),
            ("main", Some(0), 3, 4),
            ("main", Some(1), 4, 5),
        ];
        let arranged = arrange_effects(with_diff(files, &diff, &parts));
        let names: Vec<&str> = arranged.proposal.diff.iter().filter_map(|file| file.name.as_deref()).collect();
        assert_eq!(names, ["main", "gone", "new"]);
        let parts: Vec<(&str, Option<usize>, usize, usize)> =
            arranged.amendable.effects.iter().map(|part| (part.path.as_str(), part.hunk, part.first, part.end)).collect();
        let expected = [
            ("main", Some(0), 0, 1),
            ("main", Some(1), 1, 2),
            ("gone", None, 2, 3),
            ("new", None, 3, 4),
            ("link", None, 4, 4),
            ("run", None, 4, 4),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_diff_with_the_same_name_twice_is_unchanged() {
        let diff = "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
        let files = vec![("a", EffectKind::Created { bytes: 2, binary: false })];
        let approval = with_diff(files, diff, &[("a", None, 0, 2)]);
        assert_eq!(arrange_effects(approval.clone()), approval);
    }
}
