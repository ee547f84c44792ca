//! Patch files, which contain the changes made by a task as a JSON header and a patch in git's format. Readers treat
//! them as untrusted data.

mod binary;
mod body;
mod collection;
mod header;
mod review;
#[cfg(test)]
mod tests;

pub(crate) use collection::{CollectedChanges, is_older};
pub(crate) use header::{FileEntry, FileState, LoggedVerdict, OmittedPath, PatchHeader, PolicyStamp};
pub(crate) use review::PatchReview;

use crate::protocol::{FileDiff, FileDiffs};
use std::path::{Component, Path};

/// Version of the file format.
const VERSION: u32 = 1;
/// First line of a patch file.
const FIRST_LINE: &str = "aye patch 1";
/// Maximum size of a patch file in bytes.
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// Maximum size of a changed file in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;
/// Maximum number of changed files.
const MAX_FILES: usize = 2_000;
/// Maximum number of omitted paths, and of verdicts, to list. Any further ones are only counted.
const MAX_LISTED: usize = 500;
/// Maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 1_024;

/// A parsed patch file. What it claims about paths and contents is checked when it is applied.
#[derive(Debug)]
pub(crate) struct PatchFile {
    header: PatchHeader,
    diffs: FileDiffs,
    digest: String,
    /// The user's review, along with the record of the changes applied. `None` if the patch was read from a file.
    review: Option<PatchReview>,
}

impl PatchFile {
    /// Parses a patch file without accessing the disk.
    ///
    /// # Errors
    /// Returns an error that describes the first part of the file that is invalid.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())?;
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        if first != FIRST_LINE {
            return Err(match first.strip_prefix("aye patch ") {
                Some(version) => format!("the file has version {version}, but this version of aye reads version {VERSION}"),
                None => format!("the first line is not `{FIRST_LINE}`"),
            });
        }
        let mut headers = serde_json::Deserializer::from_str(rest).into_iter::<PatchHeader>();
        let header = headers.next().unwrap_or_else(|| Err(serde::de::Error::custom("missing")));
        let header = header.map_err(|error| format!("the header is invalid: {error}"))?;
        let body = rest[headers.byte_offset()..].strip_prefix("\n\n").ok_or("the header is not followed by an empty line")?;
        if header.version != VERSION {
            return Err(format!("the header has version {}, not {VERSION}", header.version));
        }
        if header.files.len() > MAX_FILES {
            return Err(format!("the file lists {} files, more than {MAX_FILES}", header.files.len()));
        }
        let diffs = FileDiffs::read(body);
        let patch = Self { header, diffs, digest: FileState::digest(bytes), review: None };
        patch.check_entries()?;
        Ok(patch)
    }

    /// Returns the text of a patch file that contains these changes.
    pub(crate) fn text(header: &PatchHeader, changes: &CollectedChanges) -> Result<String, serde_json::Error> {
        Ok(format!("{FIRST_LINE}\n{}\n\n{}", serde_json::to_string_pretty(header)?, changes.body()))
    }

    pub(crate) fn header(&self) -> &PatchHeader {
        &self.header
    }

    /// Returns the diffs of all files.
    pub(crate) fn diffs(&self) -> &FileDiffs {
        &self.diffs
    }

    /// Returns the SHA-256 digest of the whole patch file.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Attaches a review to the patch.
    #[must_use]
    pub(crate) fn for_review(self, review: PatchReview) -> Self {
        Self { review: Some(review), ..self }
    }

    pub(crate) fn review(&self) -> Option<&PatchReview> {
        self.review.as_ref()
    }

    /// Returns the entries, each with its diff.
    pub(in crate::tools) fn parts(&self) -> impl Iterator<Item = FilePart<'_>> {
        self.header.files.iter().zip(self.diffs.iter()).map(|(entry, diff)| FilePart { entry, diff })
    }

    fn check_entries(&self) -> Result<(), String> {
        let (files, diffs) = (&self.header.files, &self.diffs);
        if files.len() != diffs.len() {
            return Err(format!("the header lists {} files, and the patch changes {}", files.len(), diffs.len()));
        }
        let mut last: Option<&str> = None;
        for part in self.parts() {
            let path = part.entry.path.as_str();
            check_path(path)?;
            if last.is_some_and(|last| Path::new(last) >= Path::new(path)) {
                return Err(format!("`{path}` is out of order or listed twice"));
            }
            last = Some(path);
            part.check().map_err(|why| format!("`{path}`: {why}"))?;
        }
        Ok(())
    }
}

/// The change to one file.
#[derive(Clone, Copy)]
pub(in crate::tools) struct FilePart<'a> {
    pub entry: &'a FileEntry,
    diff: &'a FileDiff,
}

impl FilePart<'_> {
    /// Performs the checks that do not depend on the disk.
    fn check(&self) -> Result<(), String> {
        self.entry.check()?;
        body::check(self.diff, self.entry)
    }

    /// Applies the change to the content `base`. Returns the new content, which is empty if the file is deleted.
    ///
    /// # Errors
    /// Returns an error if the patch does not match the content, or if the result differs from the one that the header
    /// states.
    pub(in crate::tools) fn apply(&self, base: &[u8]) -> Result<Vec<u8>, String> {
        let content = body::apply(self.diff, base)?;
        match &self.entry.result {
            Some(result) if FileState::digest(&content) != result.sha256 => {
                Err("the patch does not produce the content recorded in the header".to_owned())
            }
            None if !content.is_empty() => Err("the patch does not remove all content".to_owned()),
            _ => Ok(content),
        }
    }
}

/// Checks that a path is relative, contains no `..`, is not inside `.git`, and can be written in a patch.
fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES || !is_writable_name(path) {
        return Err(format!("`{path}` is a path that a patch cannot contain"));
    }
    let plain = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    if !plain || !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!("`{path}` is not a path inside the workspace"));
    }
    if is_of_git(Path::new(path)) {
        return Err(format!("`{path}` is inside `.git`"));
    }
    Ok(())
}

/// Returns whether a path is a `.git` directory or inside one.
fn is_of_git(path: &Path) -> bool {
    path.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// Returns whether a path can be written in a patch without quotes.
fn is_writable_name(path: &str) -> bool {
    let has_edges = path.starts_with(char::is_whitespace) || path.ends_with(char::is_whitespace);
    !has_edges && !path.contains(" b/") && !path.contains(['"', '\\']) && !path.contains(char::is_control)
}
