//! Tools that search and list files.

pub(in crate::tools) mod encoded;
pub(in crate::tools) mod file_search;
pub(in crate::tools) mod gather;
pub(in crate::tools) mod glob;
pub(in crate::tools) mod grep;
pub(in crate::tools) mod grep_answer;
pub(in crate::tools) mod grep_arguments;
pub(in crate::tools) mod list_arguments;
pub(in crate::tools) mod list_directory;
pub(in crate::tools) mod page;
pub(in crate::tools) mod pattern;
pub(in crate::tools) mod secret_lines;
pub(in crate::tools) mod unread;
pub(in crate::tools) mod walk;
pub(in crate::tools) mod which;
