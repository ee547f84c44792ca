//! Tools that change files. Each change is shown first, and written only if the file is still the same.

pub(in crate::tools) mod amended;
pub(in crate::tools) mod append_file;
pub(in crate::tools) mod apply_patch;
pub(in crate::tools) mod copy;
pub(in crate::tools) mod create_directory;
pub(in crate::tools) mod delete;
pub(in crate::tools) mod document;
mod edit_arguments;
pub(in crate::tools) mod edit_file;
mod editor;
pub(in crate::tools) mod file_change;
mod large;
pub(in crate::tools) mod line_breaks;
pub(in crate::tools) mod matching;
mod misfit;
pub(in crate::tools) mod move_path;
pub(in crate::tools) mod replacement;
pub(in crate::tools) mod repository;
mod sequence;
mod tail;
pub(in crate::tools) mod tree_change;
pub(in crate::tools) mod write_file;

/// Applies an edit to a text like EditFile, for `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn edited(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    use replacement::{Which, put, with_lf};
    let which = if all { Which::All } else { Which::TheOnly };
    let found =
        matching::find(&with_lf(text), &with_lf(old), &with_lf(new), which, &[]).map_err(|missed| format!("{missed:?}"))?;
    Ok(put(text, found.places.iter().map(|place| (place.range.clone(), place.new.as_str()))))
}
