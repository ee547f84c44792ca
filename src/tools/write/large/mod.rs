//! Files that are too large for memory. They are searched, compared and replaced in parts.
//!
//! They are treated like smaller files except where the whole text would be needed: edits must match exactly, markers
//! are not restored, and the diff shows only the text around each change.

mod edit;
mod pieces;
mod proposal;
#[cfg(test)]
mod tests;

pub(super) use edit::{Splice, plan_edits};

use super::file_tail::Tail;
use super::git_guard::guard;
use crate::protocol::{Place, Target, ToolError};
use crate::sys::file::PreImage;
use crate::sys::file::append::scan;
use crate::tools::document::content::{Form, NotText};
use crate::tools::paths::open_error;
use crate::tools::settings::ToolSettings;

/// Size in bytes above which a file is not loaded into memory.
pub(super) const HELD_BYTES: u64 = 16 << 20;

/// Facts about a large file.
pub(super) struct Large {
    pub bytes: u64,
    pub form: Result<Form, NotText>,
    pub before: PreImage,
    /// Whether the last line ending in the file is CRLF.
    pub crlf: bool,
}

impl Large {
    /// Examines a file. Returns `Ok(None)` if the file is small enough for memory or larger than the policy allows.
    pub(super) fn inspect(target: &Target, settings: &ToolSettings) -> Result<Option<Self>, ToolError> {
        let Place::File { bytes } = target.place else { return Ok(None) };
        if bytes <= HELD_BYTES || bytes > settings.max_file_size_bytes {
            return Ok(None);
        }
        guard(target)?;
        let mut tail = Tail::default();
        let before = scan(&target.real, &mut |chunk| tail.feed(chunk)).map_err(|error| open_error(target, &error))?;
        Ok(Some(Self { bytes, form: tail.form(), before, crlf: tail.crlf() }))
    }
}
