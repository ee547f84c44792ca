//! Downloaded model catalogue, stored in the data directory.

use crate::config::Directories;
use crate::llm::Catalogue;
use crate::sys::file::private::{self, PrivateError};
use std::path::PathBuf;

/// Maximum size of the file, in bytes.
const BYTES: u64 = 1 << 20;

pub(crate) fn path(directories: &Directories) -> PathBuf {
    directories.shared.join("catalogue.toml")
}

/// Returns the catalogue, including the downloaded list if there is one. The error explains why the downloaded list
/// cannot be used.
pub(crate) fn read(directories: &Directories) -> Result<Catalogue, String> {
    let path = path(directories);
    let unusable = |why: &dyn std::fmt::Display| {
        format!(
            "using the built-in catalogue, because `{}` is not usable: {why}; run `aye models update` to replace it",
            path.display()
        )
    };
    let Some(bytes) = private::read(&path, BYTES).map_err(|error| unusable(&error))? else { return Ok(Catalogue::default()) };
    let text = std::str::from_utf8(&bytes).map_err(|_| unusable(&"not UTF-8 text"))?;
    let first = |mistakes: Vec<(usize, String)>| {
        mistakes.into_iter().next().map_or_else(String::new, |(line, what)| format!("line {line}: {what}"))
    };
    Catalogue::default().with_updated(text).map_err(|mistakes| unusable(&first(mistakes)))
}

/// Replaces the entire downloaded list.
pub(crate) fn write(directories: &Directories, text: &str) -> Result<PathBuf, PrivateError> {
    let path = path(directories);
    // The file is replaced regardless of its old content.
    match private::update::<PrivateError>(&path, BYTES, |_| Ok(Some(text.as_bytes().to_vec()))) {
        Err(PrivateError::TooLarge(_)) => {
            std::fs::remove_file(&path)?;
            private::update::<PrivateError>(&path, BYTES, |_| Ok(Some(text.as_bytes().to_vec())))?;
        }
        other => other?,
    }
    Ok(path)
}
