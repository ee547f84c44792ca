//! Names for temporary entries, which are created next to their final paths.

use std::ffi::OsString;

/// Returns a unique name for an entry that is still incomplete.
pub(in crate::sys) fn temporary_name() -> OsString {
    OsString::from(format!(".aye-{}", uuid::Uuid::new_v4().simple()))
}
