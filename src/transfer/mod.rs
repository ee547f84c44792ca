//! Sessions in other formats: export, import, HTML and Markdown.

pub mod checkpoint;
pub mod conversation;
pub mod error;
pub mod export;
pub mod fork;
pub mod format;
pub mod html;
pub mod import;
pub mod incoming;
pub mod markdown;
pub mod records_from_messages;
pub mod transcript;

#[cfg(test)]
mod tests;
