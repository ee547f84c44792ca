//! What the changes of a view look like to a person.

use crate::protocol::{CountedEffects, EffectKind, FileEffect, RefusedEffect};
use crate::sys::layer::Changes;
use crate::tools::tool::Settings;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(super) struct Shown {
    pub files: Vec<FileEffect>,
    pub more_files: u64,
    pub counted: Vec<CountedEffects>,
    pub refused: Vec<RefusedEffect>,
    pub diff: String,
    pub paths: Vec<PathBuf>,
    pub bytes: u64,
    pub notes: Vec<String>,
}

pub(super) fn refusals(changes: &Changes, settings: &Settings) -> BTreeSet<PathBuf> {
    let mut out = BTreeSet::new();
    for change in changes.entries() {
        let real = changes.directory().join(&change.path);
        let bad = if change.after.is_some() { !(settings.may_write)(&real) } else { !(settings.may_delete)(&real) };
        if bad {
            out.insert(change.path.clone());
        }
    }
    out
}

pub(super) fn shown(all: &mut Vec<Changes>, settings: &Settings) -> Shown {
    let mut shown = Shown {
        files: vec![],
        more_files: 0,
        counted: vec![],
        refused: vec![],
        diff: String::new(),
        paths: vec![],
        bytes: 0,
        notes: vec![],
    };
    for changes in all {
        let no = refusals(changes, settings);
        changes.without(&no);
        shown.refused.extend(no.iter().map(|p| RefusedEffect { path: p.display().to_string(), reason: "protected".into() }));
        for change in changes.entries() {
            shown.paths.push(changes.directory().join(&change.path));
            let kind = match (&change.before, &change.after) {
                (None, Some(after)) => EffectKind::Created { bytes: after.bytes, binary: false },
                (Some(before), None) => EffectKind::Deleted { bytes: before.bytes, binary: false },
                (Some(before), Some(after)) => {
                    EffectKind::Changed { bytes_before: before.bytes, bytes_after: after.bytes, binary: false }
                }
                (None, None) => continue,
            };
            shown.files.push(FileEffect { path: change.path.display().to_string(), kind, notes: vec![] });
        }
    }
    shown
}

pub(super) fn kept_words(all: &[Changes], refused: &[PathBuf]) -> String {
    let count: usize = all.iter().map(|changes| changes.entries().len()).sum();
    format!("[kept: {count} changes, {} not]", refused.len())
}
