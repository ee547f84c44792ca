//! Tools that search and list files.

pub(in crate::tools) mod encoded;
pub(in crate::tools) mod file_filter;
pub(in crate::tools) mod file_search;
pub(in crate::tools) mod glob;
pub(in crate::tools) mod grep;
pub(in crate::tools) mod grep_answer;
pub(in crate::tools) mod grep_arguments;
pub(in crate::tools) mod line_redaction;
pub(in crate::tools) mod list_arguments;
pub(in crate::tools) mod list_directory;
pub(in crate::tools) mod page;
pub(in crate::tools) mod pattern;
pub(in crate::tools) mod skipped;
pub(in crate::tools) mod top_k;
pub(in crate::tools) mod walk;
