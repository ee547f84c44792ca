//! What is where, in trees and in texts.

pub(in crate::tools) mod file_search;
pub(in crate::tools) mod glob;
pub(in crate::tools) mod grep;
pub(in crate::tools) mod ignore_files;
pub(in crate::tools) mod list_directory;
pub(in crate::tools) mod unread;
pub(in crate::tools) mod walk;
