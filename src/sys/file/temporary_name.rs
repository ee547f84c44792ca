//! Names of temporary entries next to the entry that they become.

use std::ffi::OsString;

/// Returns a unique name for an entry that is not complete yet.
pub(in crate::sys) fn temporary_name() -> OsString {
    OsString::from(format!(".aye-{}", uuid::Uuid::new_v4().simple()))
}
