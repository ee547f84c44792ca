//! What a place holds, told.

pub(in crate::tools) mod read_file;
