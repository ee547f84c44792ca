//! Tools that read files and their metadata.

pub(in crate::tools) mod disk_usage;
pub(in crate::tools) mod hash_file;
pub(in crate::tools) mod read_file;
pub(in crate::tools) mod stat;
pub(in crate::tools) mod upload_artifact;
