//! Reviews changes in a clean, read-only session, either for `aye review` or in the background of the session on the
//! screen.

mod background;
mod changes;
mod findings;

pub(crate) use background::ReviewService;
pub(crate) use changes::collect;
pub(crate) use findings::{SCHEMA, SCHEMA_NAME, read};

use crate::protocol::ReviewedChanges;

const PROMPT: &str = include_str!("../../../assets/review.md");

/// Returns the prompt that asks the model for findings on the changes.
pub(crate) fn prompt(changes: &ReviewedChanges) -> String {
    let names = changes.left_out_names();
    let notes = names
        .map(|names| format!("The diff omits these changed files; read them if you need them: {names}.\n"))
        .unwrap_or_default();
    PROMPT.replace("{title}", &changes.title).replace("{notes}", &notes).replace("{diff}", &changes.diffs.to_string())
}
