//! Tools that change files. Each change is first shown, and then written only if the file has not changed in the
//! meantime.

pub(in crate::tools) mod amendment;
pub(in crate::tools) mod append_file;
pub(in crate::tools) mod apply_patch;
pub(in crate::tools) mod apply_patch_file;
mod apply_patch_file_choice;
pub(in crate::tools) mod copy;
pub(in crate::tools) mod create_directory;
pub(in crate::tools) mod delete;
mod edit_arguments;
pub(in crate::tools) mod edit_file;
pub(in crate::tools) mod file_change;
mod file_tail;
mod find_lines;
pub(in crate::tools) mod git_guard;
mod large;
pub(in crate::tools) mod matching;
pub(in crate::tools) mod move_path;
mod no_match;
mod str_replace_editor;
pub(in crate::tools) mod tree_change;
pub(in crate::tools) mod write_file;

/// Applies an edit to text as `EditFile` would, for `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn edit_text(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    use super::document::replacement::{Occurrences, replace_ranges, with_lf};
    let which = if all { Occurrences::All } else { Occurrences::TheOnly };
    let found =
        matching::find(&with_lf(text), &with_lf(old), &with_lf(new), which, &[]).map_err(|missed| format!("{missed:?}"))?;
    Ok(replace_ranges(text, found.places.iter().map(|place| (place.range.clone(), place.new.as_str()))))
}
