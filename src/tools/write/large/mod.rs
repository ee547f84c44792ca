//! Files too large to be held: they are searched, compared and replaced in parts.
//!
//! What is asked of a text is the same as in a smaller one, but for what needs all of it at once: an edit is searched to the letter
//! only, markers are not put back, and the diff shows the surroundings of each change.

mod edit;
mod pieces;
mod shown;
#[cfg(test)]
mod tests;

pub(super) use edit::{Splice, edited};

use super::document::{Form, NotText};
use super::repository::guard;
use super::tail::Tail;
use crate::protocol::{Place, Target, ToolError};
use crate::sys::file::PreImage;
use crate::sys::file::append::scan;
use crate::tools::paths::open_error;
use crate::tools::tool::Settings;

/// A larger file is not held.
pub(super) const HELD_BYTES: u64 = 16 << 20;

/// A file that is not held, as it was looked at.
pub(super) struct Large {
    pub bytes: u64,
    pub form: Result<Form, NotText>,
    pub before: PreImage,
    /// Whether its lines end with CRLF, as the last of them does.
    pub crlf: bool,
}

impl Large {
    /// None of a file that may be held, and of one that may not be changed at all.
    pub(super) fn of(target: &Target, settings: &Settings) -> Result<Option<Self>, ToolError> {
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
