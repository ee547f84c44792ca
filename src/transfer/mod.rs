//! Session export and import, including HTML and Markdown output.

pub(crate) mod checkpoint;
pub(crate) mod conversation;
pub(crate) mod error;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod format;
pub(crate) mod html;
pub(crate) mod import;
pub(crate) mod incoming;
pub(crate) mod markdown;
pub(crate) mod records_from_messages;
pub(crate) mod transcript;

#[cfg(test)]
mod tests;
