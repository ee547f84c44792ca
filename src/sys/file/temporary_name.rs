//! Names of temporary entries, which are next to their final paths.

use std::ffi::OsString;

/// Returns a unique name for an entry that is not complete yet.
pub(in crate::sys) fn temporary_name() -> OsString {
    OsString::from(format!(".aye-{}", uuid::Uuid::new_v4().simple()))
}
